// A unified difference, its lines and the words of Python in it coloured.
const WORDS = new Set(("and as assert async await break case class continue def del elif else except finally for from " +
  "global if import in is lambda match nonlocal not or pass raise return try while with yield None True False self").split(" "));
const TOKEN = /(#.*$)|("""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(\d[\d_.]*(?:e[+-]?\d+)?)\b|([A-Za-z_]\w*)/g;

function coloured(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [whole, comment, string, number, word] = found;
    const kind = comment ? "c-note" : string ? "c-text" : number ? "c-number" : WORDS.has(word) ? "c-word" : "";
    if (!kind) continue;
    if (found.index > at) parts.push(text.slice(at, found.index));
    parts.push(el("span", { class: kind }, whole));
    at = found.index + whole.length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

function difference(text) {
  const body = el("tbody");
  let [before, after, oldLeft, newLeft] = [0, 0, 0, 0]; // a hunk says how many lines it has: a line of code cannot end it
  const row = (kind, left, right, sign, content) => body.append(el("tr", { class: kind },
    el("td", { class: "ln", "data-n": left }), el("td", { class: "ln", "data-n": right }),
    el("td", { class: "sign" }, sign), el("td", { class: "src" }, content)));
  for (const line of text.replace(/\n$/, "").split("\n")) {
    if (oldLeft <= 0 && newLeft <= 0) {
      const hunk = HUNK.exec(line);
      if (hunk) {
        [before, after] = [Number(hunk[1]), Number(hunk[3])];
        [oldLeft, newLeft] = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
      }
      row(hunk ? "hunk" : "file", "", "", "", line);
    } else if (line.startsWith("+")) {
      newLeft--;
      row("plus", "", after++, "+", coloured(line.slice(1)));
    } else if (line.startsWith("-")) {
      oldLeft--;
      row("minus", before++, "", "−", coloured(line.slice(1)));
    } else {
      oldLeft--;
      newLeft--;
      row("same", before++, after++, "", coloured(line.slice(1)));
    }
  }
  return el("div", { class: "wide code", tabindex: "0", role: "group", "aria-label": "Difference, scrolls sideways" },
    el("table", {}, body));
}
