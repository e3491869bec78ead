// Filters, the way from the overview to an attempt and back, keys, and following a run that goes on.
const facts = JSON.parse(byId("facts").textContent);
const overview = byId("overview");
const article = byId("attempt");
const OFFLINE = document.querySelector("header .offline")?.textContent || "";
const POLL = 2000; // milliseconds between two looks at a run that goes on
let placeOfOverview = 0;

// ---------------------------------------------------------------- filters
const [text, end, verdict] = [byId("f-text"), byId("f-end"), byId("f-verdict")];
const rowNodes = facts.rows.map((row) => byId(`row-${row.k}`));

function filter() {
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  facts.rows.forEach((row, n) => {
    const hit = (!end.value || row.end === end.value) && (!verdict.value || row.verdict === verdict.value) &&
      words.every((word) => row.text.includes(word));
    rowNodes[n].hidden = !hit;
    count += hit ? 1 : 0;
  });
  byId("f-count").textContent = `${count} of ${facts.rows.length}`;
}

for (const field of [text, end, verdict]) field.addEventListener("input", filter);
byId("filters").hidden = false;

// ---------------------------------------------------------------- one attempt
async function route() {
  const found = /^#attempt-(\d+)$/.exec(location.hash);
  const row = found && facts.rows.find((candidate) => candidate.k === Number(found[1]));
  if (!row) {
    const back = article.hidden === false;
    article.hidden = true;
    overview.hidden = false;
    if (back) byId(location.hash.slice(1) || "attempts")?.scrollIntoView();
    if (back && location.hash === "#attempts") scrollTo(0, placeOfOverview);
    return;
  }
  if (!overview.hidden) placeOfOverview = scrollY;
  try {
    article.replaceChildren(...await attemptView(row, facts.rows, OFFLINE));
  } catch (error) {
    article.replaceChildren(el("p", {}, `This attempt cannot be shown: ${error.message}. A newer browser may be needed.`));
  }
  overview.hidden = true;
  article.hidden = false;
  article.focus({ preventScroll: true });
  scrollTo(0, 0);
}

addEventListener("hashchange", route);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "/" && article.hidden) {
    event.preventDefault();
    text.focus();
  }
  const way = { j: "j", k: "k", u: "u", Escape: "u" }[event.key];
  if (way && !article.hidden) article.querySelector(`[data-key="${way}"]`)?.click();
});

// ---------------------------------------------------------------- following a run
const KEPT = "lvmh-page";

function keep() {
  const state = { fields: [text.value, end.value, verdict.value], top: scrollY, focus: document.activeElement?.id || "" };
  sessionStorage.setItem(KEPT, JSON.stringify(state));
}

async function recall() {
  const kept = facts.live ? JSON.parse(sessionStorage.getItem(KEPT) || "null") : null;
  if (kept) [text.value, end.value, verdict.value] = kept.fields;
  filter();
  await route();
  if (kept) {
    scrollTo(0, kept.top);
    if (kept.focus) byId(kept.focus)?.focus({ preventScroll: true });
    sessionStorage.removeItem(KEPT);
  }
}

async function follow() {
  try {
    const answer = await fetch("head", { cache: "no-store" });
    const head = answer.ok ? await answer.text() : "";
    byId("live").textContent = head ? "live: this page follows the run" : "the server cannot read the run just now";
    if (head && head !== facts.live) {
      keep();
      location.reload();
      return;
    }
  } catch {
    byId("live").textContent = "the server has stopped; this is the run as it stood last";
  }
  setTimeout(follow, POLL);
}

recall();
if (facts.live) setTimeout(follow, POLL);
