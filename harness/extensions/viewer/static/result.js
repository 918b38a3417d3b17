// What stands above an episode, and how it ended.

import { badge, h, json, number, prose, said, set, usd } from "./dom.js";
import { link } from "./episodes.js";

/** Title, outcome, labels and notes. `list`: filters and order of the list in which the episode has neighbors. */
export function drawHead(element, data, run, list) {
  const labels = Object.entries(data.labels).filter(([name]) => name !== "model" && name !== "sample");
  const way = (id, sign, key) =>
    h(
      "a",
      {
        class: `step${id ? "" : " off"}`,
        href: id ? link(run, id, list) : null,
        "aria-disabled": id ? null : "true",
        title: `${sign === "←" ? "Previous" : "Next"} episode (${key})`,
      },
      sign === "←" ? "← previous" : "next →",
    );
  set(
    element,
    h(
      "div",
      { class: "title-row" },
      h("h1", {}, said(/^\d+$/.test(data.case) ? `Case ${data.case}` : data.case || data.id), data.repeat ? ` #${data.repeat}` : ""),
      badge(data.result, null, data.words),
      h(
        "nav",
        { "aria-label": "Episodes" },
        Object.keys(list).length > 0 && h("span", { class: "muted" }, among(list, data.words)),
        way(data.previous, "←", "["),
        way(data.next, "→", "]"),
      ),
    ),
    h(
      "dl",
      { class: "chips" },
      [["model", data.labels.model], ...labels, ["cost", (data.cost ?? null) === null ? null : usd(data.cost, data.cost_is_whole)]]
        .filter(([, value]) => value !== undefined && value !== null)
        .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, said(String(value))))),
    ),
    data.parent &&
      h(
        "p",
        { class: "going", role: "note" },
        "This is an episode of another run with a change. ",
        h("a", { href: `#/runs/${encodeURIComponent(run)}/versions?${new URLSearchParams({ id: data.id })}` }, "Both versions side by side"),
      ),
    data.error && h("p", { class: "problem", role: "note" }, `The episode failed: ${data.error}`),
    data.problem && h("p", { class: "problem", role: "note" }, prose(data.problem)),
    data.turns_in_all > data.turns.length &&
      h(
        "p",
        { class: "problem", role: "note" },
        `The first ${number(data.turns.length)} of ${number(data.turns_in_all)} turns are shown.`,
      ),
    !data.finished &&
      h(
        "p",
        { class: "going", role: "note" },
        "This episode is not finished. If its run goes on, new rounds appear by themselves.",
      ),
  );
}

/** The filters and the order of a list in words. */
function among(list, names) {
  const words = Object.entries(list).map(([name, value]) => {
    if (name === "sort") return ["by ", said(value.replace(/^(labels|numbers)\./, "")), list.desc === "1" ? " ↓" : " ↑"];
    if (name === "q") return ["with “", said(value), "”"];
    return name === "desc" ? null : said((name === "outcome" && names[value]) || value);
  });
  return words.filter(Boolean).map((part, i) => [i > 0 && " · ", part]);
}

/** Whether a score is a mapping from agents to numbers. */
function isPerAgent(value) {
  return typeof value === "object" && !Array.isArray(value) && Object.values(value).every(Number.isFinite);
}

/** Grade, metrics, answers. */
export function drawResult(element, data) {
  const numbers = (title, values) => {
    const entries = Object.entries(values ?? {})
      .filter(([, value]) => value !== null)
      .flatMap(([name, value]) => (isPerAgent(value) ? Object.entries(value).map(([agent, own]) => [`${name}: ${agent}`, own]) : [[name, value]]));
    return (
      entries.length > 0 &&
      h(
        "section",
        {},
        h("h3", {}, title),
        h(
          "dl",
          { class: "record" },
          entries.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, number(value)))),
        ),
      )
    );
  };
  const block = (title, value) =>
    value !== null &&
    value !== undefined &&
    !(typeof value === "object" && !Object.keys(value).length) &&
    h(
      "section",
      {},
      h("h3", {}, title),
      h("pre", { class: "text", dir: "auto" }, typeof value === "string" ? value : json(value)),
    );
  set(
    element,
    numbers("Grade", data.grade),
    numbers("Metrics", data.numbers),
    block("The group’s answer", data.outcome?.group),
    block("Answers", data.outcome?.answers),
    block("The right answer", data.target),
    block("What all agents knew", data.public),
    Object.keys(data.outcome?.facts ?? {}).length > 0 &&
      h("details", {}, h("summary", {}, "Facts of the outcome"), block("", data.outcome.facts)),
    !data.finished && h("p", { class: "muted" }, "The result appears when the episode is finished."),
  );
}
