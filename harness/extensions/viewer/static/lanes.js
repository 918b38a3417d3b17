// What was found out about an episode: a lane for each agent, with the turns that stand out and the agent's share.

import { h, number, said, set } from "./dom.js";

const LANES = 12;
const SIGNS = { decisive: "✗", other: "◇", slight: "", sent: "✉" };
const WORDS = {
  decisive: "decides it",
  other: "the last chance",
  slight: "another move than the reference’s",
  sent: "a message that matters",
};

/** All findings. `open(turn)` is called when a reader chooses a turn. */
export function drawLanes(element, data, open) {
  set(
    element,
    (data.findings ?? []).map((found) =>
      h(
        "section",
        { class: "lanes", "aria-label": found.title },
        h("h3", {}, said(found.title)),
        h("p", { class: "found-text", dir: "auto" }, found.text),
        lanesOf(found, data, open),
      ),
    ),
  );
}

/** Show which round the reader is at: turns after it are faint. */
export function markLanes(element, round) {
  for (const mark of element.querySelectorAll("[data-round]"))
    mark.classList.toggle("later", Number(mark.dataset.round) > round);
}

function lanesOf(found, data, open) {
  const turns = new Map(data.turns.map((turn) => [turn.number, turn]));
  const marks = found.turns.filter((mark) => turns.has(mark.turn) && (mark.words || mark.deviates || mark.effect_of_message));
  const moving = new Set(marks.map((mark) => turns.get(mark.turn).agent));
  const share = (agent) => found.shares[agent] ?? 0;
  const agents = data.agents.filter((agent) => moving.has(agent) || share(agent) !== 0);
  if (!agents.length) return null;
  const order = new Map(data.agents.map((agent, i) => [agent, i]));
  const weight = (agent) => Math.abs(share(agent)) + (marks.some((m) => m.words && turns.get(m.turn).agent === agent) ? 1e6 : 0);
  const shown = [...agents]
    .sort((a, b) => weight(b) - weight(a))
    .slice(0, LANES)
    .sort((a, b) => order.get(a) - order.get(b));
  const most = Math.max(...agents.map((agent) => Math.abs(share(agent))), 1e-9);
  const rounds = data.turns.reduce((all, turn) => Math.max(all, turn.round + 1), 1);
  const kindOf = ({ words, deviates }) => (words.includes("decisive") ? "decisive" : words ? "other" : deviates ? "slight" : "sent");
  const mark = (one) => {
    const { turn: number_, words, deviates, effect, effect_of_message: unsent } = one;
    const turn = turns.get(number_);
    const inRound = data.turns.filter((one) => one.round === turn.round && one.agent === turn.agent);
    const at = (turn.round + (inRound.indexOf(turn) + 0.5) / inRound.length) / rounds;
    const what = [`turn ${number_}`, `round ${turn.round + 1}`, words || (deviates && "another move than the reference’s")];
    if (typeof unsent === "number") what.push(`without its message the number changes by ${number(unsent)}`);
    if (effect !== null && effect !== undefined) what.push(`alone it changes the number by ${number(effect)}`);
    const kind = kindOf(one);
    const button = h(
      "button",
      {
        type: "button",
        class: `mark ${kind}`,
        title: what.filter(Boolean).join(", "),
        "aria-label": `${turn.agent}: ${what.filter(Boolean).join(", ")}`,
        data: { round: turn.round },
        on: { click: () => open(turn) },
      },
      h("span", { "aria-hidden": "true" }, SIGNS[kind]),
    );
    button.style.setProperty("--at", String(at));
    return button;
  };
  const bar = (agent) => {
    const box = h("span", { class: `share${share(agent) < 0 ? " less" : ""}`, "aria-hidden": "true" });
    box.style.setProperty("--share", String(Math.abs(share(agent)) / most));
    return box;
  };
  const kinds = new Set(marks.map(kindOf));
  const signs = Object.entries(WORDS).filter(([kind]) => kinds.has(kind));
  return [
    h(
      "table",
      { class: "lane-table" },
      h(
        "thead",
        {},
        h("tr", {}, ["Agent", rounds > 1 ? `Rounds 1 to ${rounds}` : "Round 1", "Share"].map((name) => h("th", { scope: "col" }, name))),
      ),
      h(
        "tbody",
        {},
        shown.map((agent) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, said(agent)),
            h("td", { class: "lane" }, h("div", {}, marks.filter((m) => turns.get(m.turn).agent === agent).map(mark))),
            h("td", { class: "lane-share" }, h("div", {}, bar(agent), number(Math.round(100 * share(agent)) / 100))),
          ),
        ),
      ),
    ),
    h(
      "p",
      { class: "lane-legend muted" },
      signs.map(([kind, words]) => h("span", {}, h("span", { class: `mark ${kind}`, "aria-hidden": "true" }, SIGNS[kind]), " ", words)),
      agents.length > shown.length && h("span", {}, `${number(agents.length - shown.length)} more agents are not shown`),
    ),
  ];
}
