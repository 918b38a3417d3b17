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

// Controls, lone surrogates, and characters that reorder, hide or carry text unseen. Joiners and the marks of flags stay
// where they join: after a letter beyond ASCII, or a sign; scripts and emoji need them.
const JOINED = "(?:(?<![\\p{L}\\p{M}\\p{So}\\p{Sk}\\ufe0f])|(?<=[\\0-\\x7f]))[\\u200c\\u200d]";
const FLAG = "(?<!\\u{1f3f4}[\\u{e0061}-\\u{e007a}\\u{e0030}-\\u{e0039}]{0,6})[\\u{e0020}-\\u{e007f}]";
const ODD = new RegExp(
  `[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f]|(?![\\u200c\\u200d\\u{e0020}-\\u{e007f}])\\p{Cf}|${JOINED}|${FLAG}|\\p{Cs}` +
    "|[\\u2028\\u2029\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0]",
  "u",
);
const EACH_ODD = new RegExp(ODD.source, "gu");

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

/** A sentence of the harness, with what stands between `backticks` as code. */
export function prose(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return said(text); // a backtick that is none of a pair
  return said(parts.map((part, i) => (i % 2 ? h("code", {}, part) : part)));
}

const UNBROKEN = 16; // characters

/** A name, which breaks between its words where it is long, or the screen narrow. */
export function name(text) {
  const parts = text.split(/(?<=[-_/=,:])/);
  return h(
    "bdi",
    { class: text.length <= UNBROKEN ? "unbroken" : null },
    parts.map((part, i) => [i > 0 && document.createElement("wbr"), part]),
  );
}

/** A wide thing that scrolls by itself, with a sign at its edge where it goes on. `onWidth(box)`: its width changed. */
export function scroller(content, onWidth = () => {}) {
  const box = h("div", { class: "scroll" }, content);
  let width = null;
  const look = () =>
    box.classList.toggle("more", Math.ceil(box.scrollLeft + box.clientWidth) + 2 < box.scrollWidth);
  const watching = new ResizeObserver(() => {
    if (width !== box.clientWidth) onWidth(box);
    width = box.clientWidth;
    look();
  });
  watching.observe(box);
  watching.observe(content);
  box.addEventListener("scroll", look, { passive: true });
  return box;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value) && value.length === 2 && value.every(Number.isFinite))
    return `${number(value[0])} / ${number(value[1])}`;
  if (typeof value === "object") return JSON.stringify(value.record ?? value).slice(0, 500); // of a corpus metric
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return Math.abs(value) >= 1000
    ? Math.round(value).toLocaleString("en-US")
    : String(Number(value.toPrecision(digits)));
}

/** An amount of money; one that is not the whole is a lower bound. */
export function usd(value, isWhole) {
  return value === null || value === undefined ? "–" : `${isWhole ? "" : "≥ "}${number(value)} USD`;
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

/** What a model call used, in words: tokens, time, cost, and why it ended. */
export function callFacts(call) {
  return [
    call.input_tokens !== null &&
      `${number(call.input_tokens)} in${call.cached_tokens ? ` (${number(call.cached_tokens)} cached)` : ""}`,
    call.output_tokens !== null &&
      `${number(call.output_tokens)} out${call.reasoning_tokens ? ` (${number(call.reasoning_tokens)} reasoning)` : ""}`,
    call.latency !== null && duration(call.latency),
    call.cost !== null && usd(call.cost, call.cost_is_whole),
    call.finish_reason && `ended: ${call.finish_reason}`,
  ].filter(Boolean);
}

/** A JSON value on a line with spaces between its parts; null if it is longer than `room`. */
function line(value, room) {
  if (value === null || typeof value !== "object") {
    const text = JSON.stringify(value);
    return text.length <= room ? text : null;
  }
  const list = Array.isArray(value);
  const parts = [];
  for (const [key, item] of Object.entries(value)) {
    const name = list ? "" : `${JSON.stringify(key)}: `;
    const text = line(item, room - name.length - 2);
    if (text === null) return null;
    parts.push(name + text);
    room -= name.length + text.length + 2;
  }
  return list ? `[${parts.join(", ")}]` : `{${parts.join(", ")}}`;
}

/** Numbers and texts of a list, as many on a line as there is room for. */
function packed(items, indent) {
  const lines = [];
  for (const [i, item] of items.entries()) {
    const text = JSON.stringify(item) + (i < items.length - 1 ? "," : "");
    const last = lines.at(-1);
    if (last && last.length + text.length < 80) lines[lines.length - 1] = `${last} ${text}`;
    else lines.push(indent + text);
  }
  return lines.join("\n");
}

/** A JSON value as text, short lists on one line. */
export function json(value, indent = "") {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const flat = line(value, 90 - indent.length);
  if (flat !== null) return flat;
  const inner = `${indent}  `;
  const simple = (item) => item === null || typeof item !== "object";
  if (Array.isArray(value) && value.every(simple)) return `[\n${packed(value, inner)}\n${indent}]`;
  const parts = Array.isArray(value)
    ? value.map((item) => inner + json(item, inner))
    : Object.entries(value).map(([key, item]) => `${inner}${JSON.stringify(key)}: ${json(item, inner)}`);
  return Array.isArray(value) ? `[\n${parts.join(",\n")}\n${indent}]` : `{\n${parts.join(",\n")}\n${indent}}`;
}

const OUTCOMES = {
  solved: "✓",
  "partly solved": "◐",
  unsolved: "✗",
  failed: "!",
  unfinished: "…",
  unscored: "–",
  finished: "✓",
  running: "▶",
};

/** A word for how an episode or a run stands, with a sign beside the color. `words`: what a spec says instead of some. */
export function badge(word, title, words = {}) {
  return h(
    "span",
    { class: `badge is-${word.replaceAll(" ", "-")}`, title },
    h("span", { "aria-hidden": "true" }, OUTCOMES[word] || "•"),
    " ",
    said(words[word] ?? word),
  );
}

/** What stands where there is nothing to show. */
export function state(title, what, ...more) {
  return h("div", { class: "state" }, h("p", { class: "state-title" }, title), what && h("p", {}, prose(what)), more);
}

export function loading(what) {
  return h(
    "div",
    { class: "state", role: "status" },
    h("span", { class: "spinner", "aria-hidden": "true" }),
    h("p", {}, what),
  );
}
