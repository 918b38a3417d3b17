// A turn with another reply: what is asked of a reader before the episode is played on.

import { playOn, replies } from "./api.js";
import { h, number, prose, said, set } from "./dom.js";

const SHORT = 24; // legal replies that are shown at once

/** The button of a turn. It opens a form at the end of the turn, and closes it. */
export function whatIfButton(turn, context) {
  const button = h("button", { type: "button", class: "what-if", "aria-expanded": "false" }, "What if …");
  let form = null;
  button.addEventListener("click", async () => {
    if (form) {
      form.remove();
      form = null;
      return button.setAttribute("aria-expanded", "false");
    }
    const article = button.closest(".turn");
    form = h("form", { class: "message what-if-form" }, h("p", { class: "muted", role: "status" }, "Asking what is legal …"));
    const own = form;
    article.append(form);
    button.setAttribute("aria-expanded", "true");
    try {
      const legal = await replies(context.run, context.data.id, turn.number);
      fill(own, turn, context, legal, () => button.click());
    } catch (error) {
      set(own, h("p", { class: "problem", role: "alert" }, prose(error.message)));
    }
  });
  return button;
}

function fill(form, turn, context, legal, close) {
  const text = h("textarea", { id: `what-if-${turn.number}`, rows: Math.min(10, Math.max(2, legal.text.split("\n").length)), dir: "auto", spellcheck: "false" });
  text.value = legal.text;
  const whole = context.data.id;
  const chip = (one) => h("button", { type: "button", class: "chip", on: { click: () => ((text.value = one), text.focus()) } }, said(one));
  const shown = legal.legal.slice(0, SHORT);
  const rest = legal.legal.slice(SHORT);
  const more =
    rest.length > 0 &&
    h("button", { type: "button", class: "plain", on: { click: () => more.replaceWith(...rest.map(chip)) } }, `${number(rest.length)} more`);
  const { model } = context.players;
  const player =
    legal.asks &&
    h(
      "select",
      { id: `player-${turn.number}` },
      model && h("option", { value: "model" }, `the model ${model}`),
      h("option", { value: "stand-in" }, "a stand-in: some legal reply, offline"),
      legal.policies.map((one) => h("option", { value: one }, `the policy ${one}, from there on`)),
      h("option", { value: "" }, "nobody: stop at the first of them"),
    );
  const note = h("div", { role: "alert" });
  const buttons = [];
  const play = async (reply) => {
    for (const button of buttons) button.disabled = true;
    set(note, h("p", { class: "muted" }, h("span", { class: "spinner", "aria-hidden": "true" }), " Playing on …"));
    try {
      const asked = { episode: whole, turn: turn.number, text: reply, player: player ? player.value || null : null };
      const done = await playOn(context.run, asked);
      if (form.isConnected) location.hash = `#/runs/${encodeURIComponent(done.run)}/versions?${new URLSearchParams({ id: whole, turns: done.turns })}`;
    } catch (error) {
      set(note, h("p", { class: "problem" }, prose(error.message)));
      for (const button of buttons) button.disabled = false;
    }
  };
  buttons.push(
    h("button", { type: "submit", class: "go" }, "Play on"),
    legal.sends && h("button", { type: "button", on: { click: () => play(null) } }, "Play on without its message"),
    h("button", { type: "button", class: "quiet", on: { click: close } }, "Cancel"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    play(text.value);
  });
  set(
    form,
    h("label", { for: text.id }, `What if ${turn.agent} had said this instead?`),
    legal.tools.length > 0 && h("p", { class: "muted" }, `A JSON list of calls, each with the "name" of a tool and its "arguments"${legal.call ? `, such as ${legal.call}` : ""}. Tools: ${legal.tools.join(", ")}.`),
    text,
    shown.length > 0 &&
      h(
        "div",
        { class: "chips-box", role: "group", "aria-label": "Legal replies" },
        shown.map(chip),
        more,
        legal.left > 0 && h("span", { class: "muted" }, `and ${number(legal.left)} others`),
      ),
    player && h("p", {}, h("label", { for: player.id }, "Prompts that come to differ are answered by "), player),
    h("p", { class: "row" }, buttons),
    note,
  );
  buttons.splice(0, buttons.length, ...buttons.filter(Boolean));
  text.focus({ preventScroll: true });
  form.scrollIntoView({ block: "nearest" });
}
