// What an attempt made of the development questions: a list to choose from, and one question with its evidence.
const DAY = 86400;
const PAGE = 100;

function stamp(seconds) {
  const day = Math.floor(seconds / DAY);
  const rest = Math.floor(seconds - day * DAY);
  const two = (n) => String(n).padStart(2, "0");
  return `DAY${day + 1} ${two(Math.floor(rest / 3600))}:${two(Math.floor((rest % 3600) / 60))}:${two(rest % 60)}`;
}

// The windows an answer cites: the first in the policy's order, the others were stored as differences in time.
function cited(row, first) {
  const indexes = row.slice(0, first);
  let at = 0;
  for (const step of row.slice(first)) indexes.push(at += step);
  return indexes;
}

function answersOf(told) {
  return new Map((told?.answers?.question || []).map((place, n) => [place, told.answers.choice[n]]));
}

function questionsSection(told, parentTold, shared, parent) {
  const a = told.answers;
  const before = answersOf(parentTold);
  const section = el("section", {}, el("h3", {}, "Questions (development)"));
  if (a === null) return fill(section, {}, [el("p", {}, "It was not measured, so no question was put to it.")]);
  const changed = (n) => before.has(a.question[n]) && before.get(a.question[n]) !== a.choice[n];
  const failed = (n) => a.verdicts[n] && a.verdicts[n][0] !== "OK";
  const tests = [["all", () => true], ["not answered", failed]];
  if (before.size) tests.push([`answered otherwise than ${number4(parent)}`, changed]);
  if (a.correct) tests.push(["right", (n) => a.correct[n] === 1], ["wrong", (n) => a.correct[n] === 0]);
  for (const [n, route] of a.routes.entries()) tests.push([`route ${route}`, (i) => a.route[i] === n]);

  const which = el("select", { id: "q-which" }, tests.map(([name], n) => el("option", { value: n }, name)));
  const text = el("input", { id: "q-text", type: "search", autocomplete: "off", placeholder: "question, type, id" });
  const count = el("output", { "aria-live": "polite" });
  const list = el("ol", { class: "questions" });
  const words = a.question.map((place) => {
    const q = shared.questions[place];
    return [q[0], q[2], q[4]].join(" ").toLowerCase();
  });
  let limit = PAGE;
  const more = el("button", { type: "button" }, "Show more");
  const draw = () => {
    const test = tests[Number(which.value)][1];
    const asked = text.value.trim().toLowerCase();
    const found = words.map((_, n) => n).filter((n) => test(n) && words[n].includes(asked));
    count.textContent = `${found.length} of ${words.length}`;
    list.replaceChildren(...found.slice(0, limit).map((n) => questionItem(a, n, shared, before, changed(n))));
    more.hidden = found.length <= limit;
  };
  const again = () => { limit = PAGE; draw(); };
  which.addEventListener("change", again);
  text.addEventListener("input", again);
  more.addEventListener("click", () => { limit += PAGE; draw(); });
  draw();
  const notes = [shared.note];
  if (!a.correct) notes.push("Whether a single answer was right is not told: the run's configuration does not let an author see it (author.correctness).");
  if (a.left_out) notes.push(`${a.left_out} more questions are left out of this file to keep it small.`);
  return fill(section, {}, [
    el("div", { class: "filters" }, el("label", {}, "Show ", which), el("label", {}, "Text ", text), count),
    notes.filter(Boolean).map((note) => el("p", { class: "quiet" }, note)), list, more,
  ]);
}

function questionItem(a, n, shared, before, changed) {
  const [id, , type, , asked] = shared.questions[a.question[n]];
  const verdict = a.verdicts[n];
  const failed = verdict && verdict[0] !== "OK";
  const marks = [el("span", { class: "choice" }, failed ? verdict[0] : a.choice[n] || "no letter")];
  if (a.correct && !failed) marks.push(" ", el("span", { class: a.correct[n] ? "pill promoted" : "pill validate" }, a.correct[n] ? "right" : "wrong"));
  if (changed) marks.push(" ", el("span", { class: "quiet" }, `parent: ${before.get(a.question[n]) || "no letter"}`));
  const summary = el("summary", {}, marks, " ", given(asked || id), " ", el("span", { class: "quiet" }, given(type)));
  const box = el("details", {}, summary);
  box.addEventListener("toggle", () => {
    if (box.open && box.children.length === 1) box.append(questionView(a, n, shared));
  });
  return el("li", {}, box);
}

function questionView(a, n, shared) {
  const [id, video, , time, , choices] = shared.questions[a.question[n]];
  const verdict = a.verdicts[n];
  const indexes = cited(a.evidence[n], shared.first);
  const windows = shared.windows[video] || {};
  const facts = [`${id}, video ${video}`, time === null ? "" : `asked at ${stamp(time)}`, `route ${a.routes[a.route[n]]}`,
    `${a.tokens[n].toLocaleString("en")} tokens`, `${(a.milliseconds[n] / 1000).toFixed(3)} s`];
  const left = a.cited[n] - indexes.length;
  return el("div", { class: "question" },
    verdict ? el("p", {}, el("b", {}, verdict[0]), " ", given(verdict[1])) : null,
    el("ul", { class: "choices" }, Object.entries(choices).map(([letter, text]) =>
      el("li", letter === a.choice[n] ? { class: "chosen" } : {}, `${letter}: `, given(text),
        letter === a.choice[n] ? " ← answered" : ""))),
    el("p", { class: "quiet" }, given(facts.filter(Boolean).join(" · "))),
    indexes.length ? timeLine(indexes, windows, time, shared.first) : el("p", {}, "No evidence was named."),
    left > 0 ? el("p", { class: "quiet" }, `${left} more windows were cited; left out to keep this file small.`) : null,
    indexes.length ? evidenceList(indexes, windows, shared.first) : null);
}

// When the cited windows were, from the first cited one to the question. Without the data the axis counts windows.
function timeLine(indexes, windows, time, first) {
  const timed = time !== null && indexes.every((index) => windows[index]);
  const spans = indexes.map((index) => (timed ? windows[index].slice(0, 2) : [index, index + 1]));
  const start = Math.min(...spans.map((span) => span[0]));
  const end = Math.max(timed ? time : 0, ...spans.map((span) => span[1]));
  const [width, left, right] = [600, 8, 592];
  const at = (value) => left + ((value - start) / Math.max(end - start, 1e-9)) * (right - left);
  const bars = spans.map(([from, to], n) => shape("rect", {
    x: at(from).toFixed(1), y: n < first ? 8 : 14, width: Math.max(2, at(to) - at(from)).toFixed(1), height: n < first ? 24 : 12,
    class: n < first ? "cite first" : "cite",
  }, shape("title", {}, timed ? stamp(from) : `window ${from}`)));
  const say = (x, anchor, text) => shape("text", { x, y: 52, "text-anchor": anchor, class: "tick" }, text);
  return shape("svg", { viewBox: `0 0 ${width} 58`, class: "line", role: "img", "aria-label": `${indexes.length} windows of evidence on a time line` },
    shape("line", { x1: left, x2: right, y1: 32, y2: 32, class: "axis" }), bars.reverse(),
    timed ? shape("path", { d: `M${at(time).toFixed(1)} 4V36`, class: "asked" }) : null,
    say(left, "start", timed ? stamp(start) : `window ${start}`), say(right, "end", timed ? `asked ${stamp(time)}` : `window ${end - 1}`));
}

function evidenceList(indexes, windows, first) {
  const entry = (index) => {
    const found = windows[index];
    return el("li", {}, el("b", {}, found ? `${stamp(found[0])} ` : `window ${index} `), found ? given(found[2], { class: "lines" }) : "");
  };
  const rest = indexes.slice(first);
  const others = el("details", {}, el("summary", {}, `${rest.length} more in order of time`));
  others.addEventListener("toggle", () => {
    if (others.open && others.children.length === 1) others.append(el("ol", { class: "evidence" }, rest.map(entry)));
  });
  return el("div", {}, el("ol", { class: "evidence" }, indexes.slice(0, first).map(entry)), rest.length ? others : null);
}
