// The page of one attempt, made when it is looked at.
const PASSED = { passed: "promoted", rejected: "validate", done: "" };

function table(heads, rows, numeric) {
  const cell = (kind) => (value, n) => el(kind, numeric.has(n) ? { class: "n" } : {}, value);
  return el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": `${heads[0]}, scrolls sideways` }, el("table", {},
    el("thead", {}, el("tr", {}, heads.map(cell("th")))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td")))))));
}

function stageItem(told) {
  const by = told.by ? el("span", { class: "quiet" }, " decided by ", given(told.by), `, ${told.seconds} s`) : null;
  const findings = (told.findings || []).map((finding) => el("li", {},
    el("b", {}, given(finding.rule)), " ", given(finding.title, { class: "quiet" }), " ", el("code", {}, given(finding.where)), " ", given(finding.message),
    finding.code ? el("pre", { class: "code" }, coloured(finding.code)) : null));
  return el("li", {}, el("span", { class: `pill ${PASSED[told.mark] || ""}` }, told.mark), " ", el("b", {}, told.stage), " ",
    given(told.summary), by,
    told.reasons.length ? el("ul", {}, told.reasons.map((reason) => el("li", {}, given(reason)))) : null,
    findings.length ? el("ul", { class: "findings" }, findings) : null);
}

function typeRows(rows) {
  return rows.map(([name, n, share, low, high, before]) => [given(name), n, percent(share), `${percent(low)}–${percent(high)}`,
    percent(before), before === null ? "–" : (share >= before ? "+" : "−") + (100 * Math.abs(share - before)).toFixed(1)]);
}

function attemptHead(row, rows) {
  const at = rows.indexOf(row);
  const step = (other, text, key) => (other ? el("a", { href: `#attempt-${other.k}`, "data-key": key, title: `key ${key}` }, text) : null);
  return el("header", {},
    el("nav", { "aria-label": "Attempts" }, el("a", { href: "#attempts", "data-key": "u" }, "← all attempts"), " ",
      step(rows[at - 1], "previous", "k"), " ", step(rows[at + 1], "next", "j")),
    el("h2", { id: "h-attempt" }, `${number4(row.k)} `, given(row.title)),
    el("p", {}, el("span", { class: "pill" }, row.verdict), row.verdict === "rejected" ? ` at ${row.end}` : "",
      row.parent === null ? "" : " · made from ", row.parent === null ? "" : el("a", { href: `#attempt-${row.parent}` }, number4(row.parent))));
}

// The article of the attempt in `row`; `rows` are all, for the way to its neighbours.
async function attemptView(row, rows, offline) {
  const told = await unpack(`d-${row.k}`);
  const shared = await unpack("d-shared");
  const parentTold = row.parent === null ? null : await unpack(`d-${row.parent}`);
  const parts = [attemptHead(row, rows)];
  const label = () => (offline ? el("p", { class: "offline" }, offline) : null);
  const part = (title, ...content) => parts.push(el("section", {}, el("h3", {}, title), content));
  if (told.hypothesis.length) {
    part("Hypothesis", el("dl", {}, told.hypothesis.map(([name, text]) => [el("dt", {}, name), el("dd", {}, given(text, { class: "lines" }))])),
      el("p", { class: "quiet" }, "written by ", given(told.author)));
  }
  if (told.malformed) part("What came back", el("pre", { class: "code wide", tabindex: "0" }, told.malformed));
  if (told.effect.length) {
    part("Expected and measured", label(), el("dl", { class: "effect" }, told.effect.map(([name, expected, measured]) =>
      [el("dt", {}, name), el("dd", {}, el("span", { class: "quiet" }, "expected: "), given(expected)),
        el("dd", {}, el("span", { class: "quiet" }, "measured: "), measured)])));
  }
  if (told.figures.length) {
    part("Figures", label(), table(["figure", "development", "validation"], told.figures, new Set([1, 2])));
  }
  if (told.types.length) {
    part("By question type", label(), table(["type", "questions", "right %", "95 %", "parent %", "difference"], typeRows(told.types), new Set([1, 2, 3, 4, 5])));
  }
  if (told.stages.length) part("Verdicts", el("ol", { class: "stages" }, told.stages.map(stageItem)));
  if (told.lesson) part("Lesson", el("p", {}, given(told.lesson, { class: "lines" })));
  part("What changed", el("p", { class: "quiet" }, told.diff_note), told.diff ? difference(told.diff) : null);
  parts.push(questionsSection(told, parentTold, shared, row.parent));
  if (told.places.length) {
    part("Where it is", el("dl", {}, told.places.map(([name, text]) => [el("dt", {}, name), el("dd", {}, given(text))])));
  }
  return parts;
}
