// An episode as it was and with a change, side by side from the turn at which they part.

import { get } from "./api.js";
import { h, loading, plural, said, set, state } from "./dom.js";
import { link } from "./episodes.js";
import { heads, parting, rounds, theyPart } from "./side_by_side.js";

export async function versionsPage(main, { run, query, signal }) {
  const id = query.get("id") || "";
  set(main, loading("Opening both versions …"));
  const open = (of) => get(`runs/${encodeURIComponent(of)}/episode`, { episode: id }, { signal });
  const after = await open(run);
  if (after.parent === null) {
    return set(main, state("There is one version only.", "The run that this one plays again is not in the folder that is shown.", h("p", {}, h("a", { href: link(run, id) }, "This episode"))));
  }
  const sides = [
    { title: "As it was", run: after.parent, data: await open(after.parent) },
    { title: "With the change", run, data: after },
  ];
  const parted = parting(sides);
  const same = parted && `${plural(parted, "turn")} ${parted === 1 ? "is" : "are"} the same. `;
  set(
    main,
    h(
      "div",
      { class: "page wide" },
      h("header", { class: "page-head" }, h("h1", {}, "Both versions of ", said(after.case || id))),
      heads(sides),
      query.get("turns") && h("p", { class: "muted" }, `Turns: ${query.get("turns")}.`),
      h("p", { class: "parting", role: "note" }, parted === null ? "The change has no effect: all turns are the same." : [same || "", theyPart(sides, parted)]),
      parted !== null && rounds(sides, parted, parted),
    ),
  );
  return {};
}
