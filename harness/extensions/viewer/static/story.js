// The rounds of an episode in words; the turns of the current one.

import { h, json, plural, said, set } from "./dom.js";

const LISTED = 40;
const FAILED = { parse: "unread", limit: "limit reached", unanswered: "not answered yet" }; // as scenes.py says it

/** All rounds. `go(round)` and `open(turn)` are called when a reader chooses one. */
export function drawStory(element, { scenes, byRound, round }, go, open) {
  set(
    element,
    scenes.map((scene, i) => {
      const turns = i > 0 ? (byRound.get(i - 1) ?? []) : [];
      const now = i === round;
      const listed =
        now &&
        turns.slice(0, LISTED).map((turn) =>
          h(
            "li",
            {},
            h(
              "button",
              {
                type: "button",
                class: "plain",
                on: { click: () => open(turn) },
              },
              said(turn.agent),
            ),
            " ",
            turn.error
              ? h("span", { class: "bad" }, FAILED[turn.error_kind] ?? `failed (${turn.error_kind ?? "error"})`)
              : h("span", { class: "muted" }, turn.name),
            h("p", { class: "gist", dir: "auto" }, gist(turn)),
          ),
        );
      return h(
        "li",
        { class: now ? "now" : null, "aria-current": now ? "step" : null },
        h(
          "button",
          {
            type: "button",
            class: "plain story-round",
            on: { click: () => go(i) },
          },
          i ? `${i}` : "0",
        ),
        h(
          "div",
          {},
          h("p", {}, scene.caption),
          listed && h("ul", {}, listed),
          now &&
            turns.length > LISTED &&
            h(
              "p",
              { class: "muted" },
              `and ${plural(turns.length - LISTED, "turn")} more: choose an agent in the picture`,
            ),
        ),
      );
    }),
  );
}

/** A turn in a line. */
function gist(turn) {
  if (!turn.answered) return "…";
  const value = turn.action ?? turn.error ?? "no action";
  const text = typeof value === "string" ? value : json(value).replace(/\s+/g, " ");
  return text.length > 240 ? `${text.slice(0, 240)}…` : text;
}
