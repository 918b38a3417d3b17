// The keys of a page, and the list of what they do.

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

function closeHelp() {
  dialog?.close();
}

/** Let keys do what `doing` gives for them; not where the reader types, and a key with Ctrl is the browser's. */
export function listen(doing) {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, dialog");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && !typing) return closeHelp();
    if (typing && !(event.target.type === "range" && !event.key.startsWith("Arrow"))) return;
    if (event.key === " " && event.target.closest("button, summary, a")) return;
    const run = event.key === "?" ? showHelp : doing(event.key);
    if (!run) return;
    event.preventDefault();
    run();
  });
}
