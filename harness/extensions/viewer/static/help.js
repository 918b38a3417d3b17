// What the keys do.

import { h } from "./dom.js";

const KEYS = [
  ["← →", "a round back, a round on"],
  ["Home End", "the start, the end"],
  ["Space", "play, pause"],
  ["j k", "the agent's next turn, its previous one"],
  ["n p", "the next agent, the previous one"],
  ["[ ]", "the previous episode, the next one"],
  ["u", "up: from an episode to its run, from a run to all"],
  ["/", "search"],
  ["?", "this list"],
];
let dialog = null;

export function showHelp() {
  if (!dialog) {
    const close = h("button", { type: "button", on: { click: closeHelp } }, "Close");
    const rows = KEYS.map(([keys, what]) =>
      h(
        "div",
        {},
        h(
          "dt",
          {},
          keys.split(" ").map((key) => h("kbd", {}, key)),
        ),
        h("dd", {}, what),
      ),
    );
    dialog = h(
      "dialog",
      { class: "help", "aria-labelledby": "help-title" },
      h("h2", { id: "help-title" }, "Keys"),
      h("dl", {}, rows),
      close,
    );
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}

export function closeHelp() {
  dialog?.close();
}
