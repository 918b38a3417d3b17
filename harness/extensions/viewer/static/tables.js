// A finished table as the report shows it: its texts are made by the server (`grid`), with all rounding and marks.

import { h, said, scroller } from "./dom.js";

/** How strongly a cell of a heat map is colored, from 0 to 1; null for a cell without a number. */
function shade(data, r, i) {
  const value = data.rows[r]?.cells[i]?.value;
  const share = (data.columns?.[i]?.form ?? "quantity") !== "quantity"; // shares and counts beside the map
  if (!data.heat || share || value === null || value === undefined) return null;
  const [, low, high] = data.heat;
  return high > low ? (value - low) / (high - low) : 0;
}

function number(data, r, i, text) {
  const strength = shade(data, r, i);
  const cell = h("td", { class: strength === null ? "right" : "right shade" }, text);
  if (strength !== null) cell.style.setProperty("--heat", (0.06 + 0.44 * strength).toFixed(3));
  return cell;
}

export function table(data) {
  const { header, body, names, best = [], groups = 0 } = data.grid;
  const apart = body.length - groups;
  const levels = Math.max(...header.map((column) => column.length), 0);
  const head = [];
  for (let level = 0; level < levels; level += 1) {
    const cells = [];
    for (let i = 0; i < header.length;) {
      let end = i + 1;
      const same = (a, b) =>
        header[a].slice(0, level + 1).join("\u0000") === header[b].slice(0, level + 1).join("\u0000");
      if (level < header[i].length - 1)
        while (end < header.length && end < names === i < names && same(i, end)) end += 1;
      cells.push(
        h(
          "th",
          {
            scope: "col",
            colspan: end - i > 1 ? end - i : null,
            class: i < names ? null : end - i > 1 ? "middle" : "right",
          },
          said(header[i][level] ?? ""),
        ),
      );
      i = end;
    }
    head.push(h("tr", {}, cells));
  }
  const rows = body.map((row, r) =>
    h(
      "tr",
      { class: (!data.figure || data.heat) && data.rows[r]?.published ? "published" : null },
      row.map((cell, i) =>
        i < names
          ? h("th", { scope: "row" }, said(cell))
          : number(
              data,
              r,
              i - names,
              best.some(([y, x]) => y === r && x === i) ? h("strong", {}, said(cell)) : said(cell),
            ),
      ),
    ),
  );
  const notes = (data.notes || []).map((note) => h("li", {}, said(note)));
  return [
    scroller(
      h(
        "table",
        { class: data.heat ? "numbers is-heat" : "numbers" },
        h("caption", { class: "hidden" }, data.title),
        h("thead", {}, head),
        h("tbody", {}, rows.slice(0, apart)),
        groups > 0 && h("tbody", { class: "groups" }, rows.slice(apart)),
      ),
    ),
    notes.length > 0 && h("ul", { class: "notes" }, notes),
  ];
}
