// Nodes from data. Text only ever becomes a text node; no markup is ever parsed from a string.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const shape = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
// Text that came from a run: set apart, so that its direction cannot reorder what stands around it.
const given = (text, attributes) => el("bdi", attributes, text);
const byId = (id) => document.getElementById(id);
const number4 = (k) => String(k).padStart(4, "0");
const percent = (share) => (share === null || share === undefined ? "–" : (100 * share).toFixed(1));

const unpacked = new Map();

// What stands deflated in the page under an id, once it is looked at.
function unpack(id) {
  if (!unpacked.has(id)) unpacked.set(id, inflate(byId(id)));
  return unpacked.get(id);
}

async function inflate(holder) {
  if (holder === null) return null;
  const binary = atob(JSON.parse(holder.textContent));
  const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
