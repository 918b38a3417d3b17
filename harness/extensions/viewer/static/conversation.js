// One agent's conversation exactly as it was sent and answered, with what was read from each reply.

import { text as whole } from "./api.js";
import { callFacts, duration, h, json, number, plural, prose, said, set, usd } from "./dom.js";
import { innerCalls } from "./inner.js";
import { whatIfButton } from "./what_if.js";

const LONG = 900;
const STEP = 100_000;
const ERRORS = {
  parse: "The reply could not be read",
  limit: "A limit of the spec allowed no further call",
  unanswered: "Not answered yet",
};

/** All turns of an agent. `context`: {run, data, link(turn), onLink}. */
export function conversation(agent, context) {
  const { data } = context;
  const turns = data.turns.filter((turn) => turn.agent === agent);
  return [
    intro(agent, turns, context),
    turns.length
      ? turns.map((turn) => turnOf(turn, context))
      : h("p", { class: "muted" }, "This agent has not been asked yet."),
  ];
}

function intro(agent, turns, { data }) {
  const calls = turns.flatMap((turn) => turn.calls);
  const inner = turns.map((turn) => turn.inner).filter(Boolean);
  const paid = data.paid?.[agent];
  const sum = (parts, name) => parts.reduce((all, one) => (one[name] === null ? all : (all ?? 0) + one[name]), null);
  const used = turns.map((turn) => turn.used);
  const [input, output] = [sum(used, "input_tokens"), sum(used, "output_tokens")];
  const seconds = sum(calls, "latency");
  const played = data.policies.includes(agent) ? `policy ${data.models[agent]}` : (data.models[agent] ?? "unknown");
  const facts = [
    ["played by", played],
    ["role", data.roles[agent]],
    ["turns", number(turns.length)],
    ["calls", calls.length ? number(calls.length) : null],
    ["inner calls", inner.length ? number(inner.reduce((all, one) => all + one.calls, 0)) : null],
    ["tokens in", input === null ? null : number(input)],
    ["tokens out", output === null ? null : number(output)],
    ["time", seconds === null ? null : duration(seconds)],
    ["cost", paid && paid.cost !== null ? usd(paid.cost, paid.cost_is_whole) : null],
  ];
  return h(
    "div",
    { class: "intro" },
    h(
      "dl",
      { class: "chips" },
      facts
        .filter(([, value]) => value)
        .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, said(value)))),
    ),
    knowledge(agent, data),
  );
}

/** What this agent knew that others did not. */
function knowledge(agent, data) {
  const own = data.private[agent];
  const neighbors = data.topology?.[agent];
  const answer = data.outcome?.answers?.[agent];
  const items = [
    own && Object.keys(own).length > 0 && [`Only ${agent} knew`, Object.entries(own)],
    neighbors && [`${agent} could reach`, [["neighbors", neighbors.join(", ") || "no other agent"]]],
    answer !== undefined && answer !== null && [`${agent}’s answer in the end`, [["answer", answer]]],
  ].filter(Boolean);
  if (!items.length)
    return h("p", { class: "muted" }, "All agents started with the same facts, apart from their names.");
  return h(
    "div",
    { class: "knows" },
    items.map(([title, facts]) =>
      h(
        "section",
        {},
        h("h3", {}, said(title)),
        h(
          "dl",
          {},
          facts.map(([name, value]) =>
            h(
              "div",
              {},
              h("dt", {}, name),
              h("dd", { dir: "auto" }, clamped(typeof value === "string" ? value : json(value))),
            ),
          ),
        ),
      ),
    ),
  );
}

function turnOf(turn, context) {
  const calls = turn.calls.length ? turn.calls : [];
  const retries = turn.retries.map((retry, i) => ({ text: retry, part: `retry.${i}` }));
  const said_ = [];
  calls.forEach((call, i) => {
    said_.push(reply(call, i, turn, context));
    if (i < retries.length) said_.push(message("retry", retries[i].text, turn, retries[i].part, context));
  });
  for (const retry of retries.slice(calls.length)) said_.push(message("retry", retry.text, turn, retry.part, context));
  const copy = (event) => context.onLink(event, turn);
  const found = (context.data.findings ?? []).flatMap((one) => one.turns).find((one) => one.turn === turn.number && one.words);
  return h(
    "article",
    {
      class: `turn${turn.error ? " has-error" : ""}`,
      id: `turn-${turn.number}`,
      tabindex: -1,
      "aria-label": `turn ${turn.number}, round ${turn.round + 1}, ${turn.name}`,
    },
    h(
      "header",
      {},
      h(
        "h3",
        {},
        `Round ${turn.round + 1}`,
        h("span", { class: "muted" }, " · ", said(turn.name), turn.fresh && turn.index > 0 && " · new conversation"),
      ),
      found && h("span", { class: "found-mark" }, said(found.words)),
      context.players && turn.answered && !turn.scored.length && whatIfButton(turn, context),
      h("a", { class: "permalink", href: context.link(turn), title: "Link to this turn", on: { click: copy } }, "link"),
    ),
    turn.tools && message("tools", turn.tools, turn, "tools", context),
    turn.prompt.map((part, i) => message(part.role, part.text, turn, `prompt.${i}`, context)),
    innerCalls(turn, context, (text, part, fold) => body(text, turn, part, context, fold)),
    said_,
    !turn.answered && h("p", { class: "pending" }, "Waiting for the answer …"),
    action(turn, context),
  );
}

const ROLES = { system: "System", user: "User", assistant: "Assistant", tools: "Tools", tool: "Result of a call", retry: "User, asked again" };

function message(role, text, turn, part, context) {
  return h(
    "section",
    { class: `message ${role}` },
    h("h4", {}, ROLES[role] ?? said(role)),
    body(text, turn, part, context, role === "system" || role === "tools"),
  );
}

function reply(call, i, turn, context) {
  const meta = callFacts(call);
  return h(
    "section",
    { class: "message assistant" },
    h(
      "h4",
      {},
      "Assistant",
      turn.calls.length > 1 && ` · reply ${i + 1} of ${turn.calls.length}`,
      meta.length > 0 && h("span", { class: "meta" }, meta.join(" · ")),
    ),
    call.reasoning &&
      h(
        "details",
        { class: "reasoning" },
        h(
          "summary",
          {},
          `Reasoning, ${plural(context.length(turn, `call.${i}.reasoning`, call.reasoning), "character")}`,
        ),
        body(call.reasoning, turn, `call.${i}.reasoning`, context),
      ),
    call.text === ""
      ? h("p", { class: "muted" }, turn.scored.length ? "(scored: nothing is written)" : "(an empty reply)")
      : body(call.text, turn, `call.${i}.text`, context),
  );
}

function action(turn, context) {
  if (!turn.answered) return null;
  const error =
    turn.error &&
    h(
      "div",
      { class: "error" },
      h(
        "p",
        {},
        h("strong", {}, ERRORS[turn.error_kind] ?? `Failed (${turn.error_kind})`),
        turn.action !== null && "; what could be read counts.",
      ),
      body(turn.error, turn, "error", context),
    );
  if (turn.scored.length)
    return h("section", { class: "message action" }, h("h4", {}, "Log-likelihoods"), error, scores(turn.scored));
  const read =
    turn.action === null
      ? turn.error
        ? null
        : h("p", { class: "muted" }, "no action")
      : body(typeof turn.action === "string" ? turn.action : json(turn.action), turn, "action", context);
  return h("section", { class: "message action" }, h("h4", {}, turn.calls.length ? "Read as" : "Action"), error, read);
}

/** The texts of a scored turn: log-likelihood, share among them, and whether greedy decoding writes it. */
function scores(rows) {
  const best = Math.max(...rows.map((row) => row.share ?? -1));
  const head = ["Text", "Log-likelihood", "Share", "Greedy"].map((name) => h("th", { scope: "col" }, name));
  const lines = rows.map((row) =>
    h(
      "tr",
      { class: row.share !== null && row.share === best ? "best" : "" },
      h("td", {}, h("code", { dir: "auto" }, row.text)),
      h("td", { class: "number" }, row.value === null ? "−∞" : row.value.toFixed(3)),
      h("td", { class: "number" }, row.share === null ? "" : row.share.toFixed(3)),
      h("td", {}, row.greedy ? "yes" : ""),
    ),
  );
  return h("table", { class: "scores" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, lines));
}

/** A text of any length: long ones folded, cut ones loaded when asked for, some at a time. */
function body(text, turn, part, context, fold = false) {
  const length = context.length(turn, part, text);
  const cut = length > text.length;
  const pre = h("pre", { class: "text", dir: "auto" }, text);
  if (!cut && text.length <= (fold ? 400 : LONG) && text.split("\n").length <= (fold ? 8 : 24)) return pre;
  pre.classList.add("folded");
  const more = h(
    "button",
    { type: "button", class: "more", "aria-expanded": "false" },
    `Show all ${plural(length, "character")}`,
  );
  const box = h("div", { class: "foldable" }, pre, more);
  let loaded = null;
  let at = text.length;
  more.addEventListener("click", async () => {
    if (pre.classList.contains("folded")) {
      pre.classList.remove("folded");
      more.setAttribute("aria-expanded", "true");
      if (!cut) return set(more, "Show less");
    } else if (!cut || at >= length) {
      pre.classList.add("folded");
      more.setAttribute("aria-expanded", "false");
      return set(more, `Show all ${plural(length, "character")}`);
    }
    more.disabled = true;
    try {
      if (loaded === null) {
        loaded = await whole(context.run, context.data.id, turn.number, part);
        set(pre);
        at = 0;
      }
      pre.append(h("span", {}, loaded.slice(at, at + STEP)));
      at = Math.min(loaded.length, at + STEP);
      set(
        more,
        at < loaded.length ? `Show more (${number(at)} of ${plural(loaded.length, "character")})` : "Show less",
      );
      if (at >= loaded.length) at = length;
    } catch (error) {
      box.append(h("p", { class: "problem" }, prose(error.message)));
    }
    more.disabled = false;
  });
  return box;
}

function clamped(text) {
  const pre = h("pre", { class: "text", dir: "auto" }, text);
  return text.length <= 400 ? pre : h("details", {}, h("summary", {}, `${text.slice(0, 120)} …`), pre);
}
