// An episode as it was and with a change, side by side from the turn at which they part.

import { get } from "./api.js";
import { badge, h, json, loading, number, plural, said, set, state } from "./dom.js";
import { link } from "./episodes.js";

const LISTED = 400; // turns of the two, from where they part

export async function versionsPage(main, { run, query, signal }) {
  const id = query.get("id") || "";
  set(main, loading("Opening both versions …"));
  const open = (of) => get(`runs/${encodeURIComponent(of)}/episode`, { episode: id }, { signal });
  const after = await open(run);
  if (after.parent === null) {
    return set(main, state("There is one version only.", "The run that this one plays again is not in the folder that is shown.", h("p", {}, h("a", { href: link(run, id) }, "This episode"))));
  }
  const before = await open(after.parent);
  const parted = partingOf(before, after);
  const sides = [
    { title: "As it was", run: after.parent, data: before },
    { title: "With the change", run, data: after },
  ];
  set(
    main,
    h(
      "div",
      { class: "page wide" },
      h("header", { class: "page-head" }, h("h1", {}, "Both versions of ", said(after.case || id))),
      h("div", { class: "versions-head" }, sides.map((side) => headOf(side, sides))),
      query.get("turns") && h("p", { class: "muted" }, `Turns: ${query.get("turns")}.`),
      h("p", { class: "parting", role: "note" }, words(parted, before, after)),
      parted !== null && table(parted, before, after, sides),
    ),
  );
  return {};
}

function headOf({ title, run, data }, sides) {
  const other = sides.find((side) => side.run !== run);
  const all = Object.entries(data.numbers).filter(([name]) => sides.some((side) => typeof side.data.numbers[name] === "number"));
  const numbers = all.filter(([name, value]) => other.data.numbers[name] !== value);
  const same = all.length - numbers.length;
  return h(
    "section",
    { class: "card" },
    h("h2", {}, title, " ", badge(data.result, null, data.words)),
    h("dl", { class: "record" }, numbers.map(([name, value]) => h("div", { class: "differs" }, h("dt", {}, said(name)), h("dd", {}, number(value))))),
    same > 0 && h("p", { class: "muted" }, `${plural(same, "number")} ${same === 1 ? "is" : "are"} the same in both.`),
    h("p", {}, h("a", { href: link(run, data.id) }, "The whole episode")),
  );
}

const did = (turn) => JSON.stringify([turn.agent, turn.name, turn.action, turn.error, turn.calls.map((call) => call.text)]);

/** The number of the first turn that differs; null where none does. */
function partingOf(before, after) {
  const length = Math.max(before.turns.length, after.turns.length);
  for (let i = 0; i < length; i += 1) {
    const [a, b] = [before.turns[i], after.turns[i]];
    if (!a || !b || did(a) !== did(b)) return i;
  }
  return null;
}

function words(parted, before, after) {
  if (parted === null) return "The change has no effect: all turns are the same.";
  const turn = after.turns[parted] ?? before.turns[parted];
  return `${parted ? `${plural(parted, "turn")} ${parted === 1 ? "is" : "are"} the same. ` : ""}They part at turn ${parted}, of ${turn.agent} in round ${turn.round + 1}.`;
}

function table(parted, before, after, sides) {
  const rows = new Map();
  const take = (side, turn) => {
    const round = rows.get(turn.round) ?? [[], []];
    round[side].push(turn);
    rows.set(turn.round, round);
  };
  [before, after].forEach((data, side) => data.turns.slice(parted, parted + LISTED).forEach((turn) => take(side, turn)));
  const left = Math.max(before.turns.length, after.turns.length) - parted - LISTED;
  const twin = (turn, turns) => turns.find((one) => one.agent === turn.agent && one.index === turn.index);
  const same = (turn, turns) => did(turn) === did(twin(turn, turns) ?? { ...turn, action: {}, agent: null });
  const over = [false, false]; // said once
  const shown = [];
  for (const [round, [left_, right]] of [...rows].sort(([a], [b]) => a - b)) {
    const alike = left_.length === right.length && left_.every((turn) => same(turn, right));
    if (alike && shown.at(-1)?.to !== undefined) shown.at(-1).to = round;
    else shown.push(alike ? { round, to: round } : { round, both: [left_, right] });
  }
  const card = (turn, side, others) =>
    h(
      "article",
      { class: `version${same(turn, others) ? " is-same" : ""}${turn.number === parted ? " parts" : ""}` },
      h(
        "h4",
        {},
        h("a", { href: link(sides[side].run, sides[side].data.id, { turn: turn.number }) }, said(turn.agent)),
        h("span", { class: "muted" }, ` · turn ${turn.number}`),
      ),
      h("pre", { class: "text", dir: "auto" }, gist(turn)),
    );
  return [
    shown.map(({ round, to, both }) =>
      h(
        "section",
        { class: "versions-round" },
        h("h3", {}, to > round ? `Rounds ${round + 1} to ${to + 1}` : `Round ${round + 1}`),
        both
          ? h(
              "div",
              { class: "versions" },
              both.map((turns, side) =>
                h(
                  "div",
                  { role: "group", "aria-label": sides[side].title },
                  turns.length === 0 && !over[side] && h("p", { class: "muted" }, (over[side] = true) && "It was over."),
                  turns.map((turn) => card(turn, side, both[1 - side])),
                ),
              ),
            )
          : h("p", { class: "muted" }, "All turns are the same in both."),
      ),
    ),
    left > 0 && h("p", { class: "muted" }, `${plural(left, "later turn")} are not listed: open the whole episodes.`),
  ];
}

/** What was done, and what was written where a model wrote it. */
function gist(turn) {
  const text = turn.calls.at(-1)?.text || (turn.action === null ? (turn.error ?? "no action") : typeof turn.action === "string" ? turn.action : json(turn.action));
  return text.length > 1500 ? `${text.slice(0, 1500)}…` : text;
}
