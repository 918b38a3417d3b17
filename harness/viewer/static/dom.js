// Elements, texts and numbers. Every text reaches the page as a text node: what models write stays text.

const SVG = "http://www.w3.org/2000/svg";

/** An element. Properties: `class`, `on: {event: function}`, `data: {name: value}`, and attributes. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element; the same properties. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

/** Append elements and texts; lists are flattened, null and false left out. */
export function add(element, children) {
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : shown(String(child)));
  }
}

/** Replace all content. */
export function set(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

// Controls, and characters that reorder or hide text. Joiners stay: scripts and emoji need them.
const ODD =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;
const EACH_ODD = new RegExp(ODD.source, "g");

/** A control character as one that can be seen: ␀, or ⟨U+202E⟩ for those without a picture. */
function picture(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A text without invisible characters: they are shown. */
export function visible(text) {
  return ODD.test(text) ? text.replace(EACH_ODD, picture) : text;
}

/** The same as a node, in which shown controls look different from text. */
export function shown(text) {
  if (!ODD.test(text)) return document.createTextNode(text);
  const fragment = document.createDocumentFragment();
  let at = 0;
  for (const match of text.matchAll(EACH_ODD)) {
    fragment.append(text.slice(at, match.index));
    const mark = document.createElement("span");
    mark.className = "control";
    mark.textContent = picture(match[0]);
    fragment.append(mark);
    at = match.index + match[0].length;
  }
  fragment.append(text.slice(at));
  return fragment;
}

/** A text of a model or a spec within a line of the page: its direction does not leak. */
export function said(text, properties = {}) {
  return h("bdi", properties, text);
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return `${number(value[0])} / ${number(value[1])}`;
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return Math.abs(value) >= 1000
    ? Math.round(value).toLocaleString("en-US")
    : String(Number(value.toPrecision(digits)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toPrecision(2))} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function when(text) {
  const date = new Date(text || "");
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return Number.isNaN(date.getTime())
    ? "–"
    : date.toLocaleString(undefined, {
        year,
        month: "short",
        day: "numeric",
        hour: "2-digit",
        minute: "2-digit",
        hour12: false,
      });
}

export function plural(count, noun, more = `${noun}s`) {
  return `${number(count)} ${count === 1 ? noun : more}`;
}

/** A JSON value as text, short lists on one line. */
export function json(value, indent = "") {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const flat = JSON.stringify(value);
  if (flat.length < 90 - indent.length) return flat.replaceAll('":', '": ').replaceAll(",", ", ");
  const inner = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => inner + json(item, inner))
    : Object.entries(value).map(([key, item]) => `${inner}${JSON.stringify(key)}: ${json(item, inner)}`);
  return Array.isArray(value) ? `[\n${parts.join(",\n")}\n${indent}]` : `{\n${parts.join(",\n")}\n${indent}}`;
}

const OUTCOMES = {
  solved: "✓",
  unsolved: "✗",
  failed: "!",
  unfinished: "…",
  unscored: "–",
  finished: "✓",
  running: "▶",
};

/** A word for how an episode or a run stands, with a sign of its own beside the color. */
export function badge(word, title) {
  return h(
    "span",
    { class: `badge is-${word.replaceAll(" ", "-")}`, title },
    h("span", { "aria-hidden": "true" }, OUTCOMES[word] || "•"),
    ` ${word}`,
  );
}

/** What stands where there is nothing to show. */
export function state(title, what, ...more) {
  return h("div", { class: "state" }, h("p", { class: "state-title" }, title), what && h("p", {}, what), more);
}

export function loading(what) {
  return h(
    "div",
    { class: "state", role: "status" },
    h("span", { class: "spinner", "aria-hidden": "true" }),
    h("p", {}, what),
  );
}
