// What an agent's program asked its model in a turn, apart from its reply: loaded when a reader opens it.

import { inner as load } from "./api.js";
import { callFacts, h, json, number, plural, said, set, usd } from "./dom.js";

const ROLES = { system: "System", user: "User", assistant: "Assistant", tool: "Result of a call", text: "Text to continue" };

/** The turn's inner calls, folded; `body(text, part, fold)` shows a text of any length. Null for a turn without any. */
export function innerCalls(turn, context, body) {
  const used = turn.inner;
  if (!used || !(used.calls || used.refused || used.dropped)) return null;
  const facts = [
    used.calls > 0 && `${number(used.input_tokens)} in, ${number(used.output_tokens)} out`,
    used.cost !== null && usd(used.cost, used.cost_is_whole),
    used.failed > 0 && `${number(used.failed)} failed`,
    used.refused > 0 && `${number(used.refused)} refused by a limit`,
    used.dropped > 0 && `${number(used.dropped)} dropped`,
  ].filter(Boolean);
  const list = h("div", { class: "inner-list" });
  const box = h(
    "details",
    { class: "inner-calls" },
    h("summary", {}, plural(used.calls, "inner call"), h("span", { class: "meta" }, facts.join(" · "))),
    list,
  );
  let asked = false;
  box.addEventListener("toggle", () => {
    if (!box.open || asked) return;
    asked = true;
    more(list, turn, context, body, 0);
  });
  return box;
}

/** Load some of the calls, and put them at the end of the list. */
async function more(list, turn, context, body, offset) {
  const note = h("p", { class: "muted" }, "Loading …");
  list.append(note);
  try {
    const found = await load(context.run, context.data.id, turn.number, offset);
    Object.assign(turn.cuts, found.cuts);
    const calls = found.calls.filter((call) => !call.dropped);
    const dropped = found.calls.filter((call) => call.dropped);
    const shown = calls.map((call) => callOf(call, body));
    const end = offset + found.calls.length;
    const on = h("button", { type: "button", class: "more" }, `Show more (${number(end)} of ${plural(found.total, "call")})`);
    on.addEventListener("click", () => {
      on.remove();
      more(list, turn, context, body, end);
    });
    note.remove();
    list.append(...shown);
    if (dropped.length)
      list.append(
        h(
          "details",
          { class: "dropped" },
          h("summary", {}, `${plural(dropped.length, "call")} that the program did not make again after a resume`),
          dropped.map((call) => callOf(call, body)),
        ),
      );
    if (end < found.total) list.append(on);
  } catch (error) {
    set(note, error.message);
  }
}

function callOf(call, body) {
  const meta = [...callFacts(call), call.error !== null && `failed (${call.error_kind})`].filter(Boolean);
  const title = [
    `Call ${number(call.number + 1)}`,
    call.attempt > 0 && ` · for reply ${call.attempt + 1}`,
    call.start > 0 && ` · after ${plural(call.start, "resume")}`,
    " · ",
    said(call.model),
  ];
  return h(
    "details",
    { class: `inner-call${call.error === null ? "" : " has-error"}` },
    h("summary", {}, title, h("span", { class: "meta" }, meta.join(" · "))),
    call.earlier > 0 &&
      h("p", { class: "muted" }, `After the first ${plural(call.earlier, "message")} of ${baseOf(call)}:`),
    call.tools && part("tools", "Tools", body(call.tools, `${call.name}.tools`, true)),
    call.messages.map((one, i) =>
      part(one.role, ROLES[one.role] ?? said(one.role), body(one.text, `${call.name}.message.${i}`, one.role === "system")),
    ),
    call.settings && h("p", { class: "muted" }, said(json(call.settings))),
    call.reasoning &&
      h("details", { class: "reasoning" }, h("summary", {}, "Reasoning"), body(call.reasoning, `${call.name}.reasoning`)),
    call.reply !== null &&
      part("assistant", "Answer", call.reply === "" ? h("p", { class: "muted" }, "(empty)") : body(call.reply, `${call.name}.reply`)),
    call.error !== null && h("div", { class: "error" }, body(call.error, `${call.name}.error`)),
  );
}

/** The call whose messages are not shown again. */
function baseOf(call) {
  const { index, attempt, number: place } = call.base;
  const where = index !== call.index ? " of an earlier turn" : attempt !== call.attempt ? ` for reply ${attempt + 1}` : "";
  return `call ${number(place + 1)}${where}`;
}

const part = (kind, title, content) => h("section", { class: `message ${kind}` }, h("h4", {}, title), content);
