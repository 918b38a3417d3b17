// Two episodes next to each other, aligned by round and turn. A side is {title, run, data}: its run, and the transcript.

import { badge, h, json, number, plural, prose, said } from "./dom.js";
import { link } from "./episodes.js";

const LISTED = 400; // turns of each side
const LONG = 1500; // characters of a reply

/** Above both: how they ended, the numbers in which they differ, links to the whole episodes. */
export function heads(sides) {
  return h("div", { class: "versions-head" }, sides.map((side, i) => headOf(side, sides[1 - i])));
}

function headOf({ title, run, data }, other) {
  const all = Object.entries(data.numbers).filter(([name]) => [data, other.data].some((one) => typeof one.numbers[name] === "number"));
  const numbers = all.filter(([name, value]) => other.data.numbers[name] !== value);
  const same = all.length - numbers.length;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, said(title), " ", badge(data.result, null, data.words)),
    data.error && h("p", { class: "problem" }, `The episode failed: ${data.error}`),
    data.problem && h("p", { class: "problem" }, prose(data.problem)),
    h("dl", { class: "record" }, numbers.map(([name, value]) => h("div", { class: "differs" }, h("dt", {}, said(name)), h("dd", {}, number(value))))),
    same > 0 && h("p", { class: "muted" }, `${plural(same, "number")} ${same === 1 ? "is" : "are"} the same in both.`),
    h("p", {}, h("a", { href: link(run, data.id) }, "The whole episode")),
  );
}

const did = (turn) => JSON.stringify([turn.agent, turn.name, turn.action, turn.error, turn.calls.map((call) => call.text)]);

/** The number of the first turn that differs; null where none does. */
export function parting([before, after]) {
  const length = Math.max(before.data.turns.length, after.data.turns.length);
  for (let i = 0; i < length; i += 1) {
    const [a, b] = [before.data.turns[i], after.data.turns[i]];
    if (!a || !b || did(a) !== did(b)) return i;
  }
  return null;
}

/** Where that is, as nodes. */
export function theyPart([before, after], parted) {
  const turn = after.data.turns[parted] ?? before.data.turns[parted];
  return [`They part at turn ${parted}, of `, said(turn.agent), ` in round ${turn.round + 1}.`];
}

/** All rounds from a turn on, those that are the same in both as a line. `parted`: the first turn that differs. */
export function rounds(sides, from, parted) {
  const turns = sides.map((side) => side.data.turns.slice(from, from + LISTED));
  const found = new Map(); // round → what each place did on both sides
  const order = [...new Set(turns.flat().map((turn) => turn.round))].sort((a, b) => a - b);
  for (const round of order) found.set(round, pairs(turns.map((side) => side.filter((turn) => turn.round === round))));
  const shown = [];
  for (const [round, both] of found) {
    const alike = both.every(([a, b]) => a && b && did(a) === did(b));
    if (alike && shown.at(-1)?.to !== undefined) shown.at(-1).to = round;
    else shown.push(alike ? { round, to: round } : { round, both });
  }
  const lengths = sides.map((side) => side.data.turns.length);
  const left = Math.max(...lengths) - from - LISTED;
  const last = sides.map((side) => side.data.turns.at(-1)?.round ?? -1);
  return [
    shown.map(({ round, to, both }) =>
      h(
        "section",
        { class: "versions-round" },
        h("h3", {}, to > round ? `Rounds ${round + 1} to ${to + 1}` : `Round ${round + 1}`),
        both
          ? both.map((pair, row) =>
              h(
                "div",
                { class: "versions" },
                pair.map((turn, i) =>
                  turn ? cell(turn, pair[1 - i], sides[i], parted) : h("p", { class: "muted" }, row === 0 && last[i] === round - 1 && "It was over."),
                ),
              ),
            )
          : h("p", { class: "muted" }, "All turns are the same in both."),
      ),
    ),
    left > 0 && h("p", { class: "muted" }, `${plural(left, "later turn")} are not listed: open the whole episodes.`),
  ];
}

/** The turns of a round, each with its counterpart: the same agent's turn of the same number. */
function pairs([left, right]) {
  const place = (turn) => `${turn.index} ${turn.agent}`;
  const places = [...new Set([...left, ...right].map(place))];
  return places.map((one) => [left, right].map((side) => side.find((turn) => place(turn) === one) ?? null));
}

function cell(turn, twin, { title, run, data }, parted) {
  const same = twin !== null && did(turn) === did(twin);
  const first = turn.number === parted;
  const text = turn.calls.at(-1)?.text;
  const read = turn.action === null ? null : typeof turn.action === "string" ? turn.action : json(turn.action);
  return h(
    "article",
    { class: `version${same ? " is-same" : ""}${first ? " parts" : ""}`, "aria-label": title },
    h(
      "h4",
      {},
      h("a", { href: link(run, data.id, { turn: turn.number }) }, said(turn.agent)),
      h("span", { class: "muted" }, `· turn ${turn.number}`, same && " · the same"),
      first && h("span", { class: "first-difference" }, "first difference"),
    ),
    h("pre", { class: "text", dir: "auto" }, short(text || read || (turn.error ?? "no action"))),
    text && turn.error && h("p", { class: "bad" }, short(turn.error)),
    text && read && read !== text.trim() && h("p", { class: "muted read-as", dir: "auto" }, "read as ", said(short(read))),
  );
}

const short = (text) => (text.length > LONG ? `${text.slice(0, LONG)}…` : text);
