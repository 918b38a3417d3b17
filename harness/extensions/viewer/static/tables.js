// A finished table as the report shows it: its texts are made by the server (`grid`), with all rounding and marks.
// A reader may sort it by any column, if asked for.

import { h, name as named, prose, said, scroller } from "./dom.js";

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

/**
 * A table and its notes. `sortable`: its headings sort it. `href(r, i)`: where a cell leads, null for nowhere; i counts
 * the row's names, too. `after`: {column, title, draw(r)}, a drawn column behind another one.
 */
export function table(data, { sortable = false, href = () => null, after = null } = {}) {
  const { header, body, names, best = [], groups = 0 } = data.grid;
  const apart = body.length - groups;
  const levels = Math.max(...header.map((column) => column.length), 0);
  const sorter = sortable && apart > 1 ? new Sorter(data, apart) : null;
  const head = [];
  for (let level = 0; level < levels; level += 1) {
    const cells = [];
    for (let i = 0; i < header.length;) {
      let end = i + 1;
      const same = (a, b) =>
        header[a].slice(0, level + 1).join("\u0000") === header[b].slice(0, level + 1).join("\u0000");
      if (level < header[i].length - 1)
        while (end < header.length && end < names === i < names && same(i, end)) end += 1;
      const title = said(header[i][level] ?? "");
      const sorts = sorter && level === header[i].length - 1;
      const cell = h(
        "th",
        {
          scope: "col",
          colspan: end - i > 1 ? end - i : null,
          class: i < names ? null : end - i > 1 ? "middle" : "right",
        },
        sorts ? sorter.button(i, title) : title,
      );
      if (sorts) sorter.heads.set(i, cell);
      cells.push(cell);
      if (after && end > after.column && i <= after.column)
        cells.push(h("th", { scope: "col" }, level === levels - 1 && said(after.title)));
      i = end;
    }
    head.push(h("tr", {}, cells));
  }
  const rows = body.map((row, r) =>
    h(
      "tr",
      { class: (!data.figure || data.heat) && data.rows[r]?.published ? "published" : null },
      row.map((cell, i) => {
        const to = cell && href(r, i);
        const words = i < names && data.columns?.length ? named(cell) : said(cell);
        const text = to ? h("a", { href: to }, words) : words;
        const strong = best.some(([y, x]) => y === r && x === i);
        return [
          i < names ? h("th", { scope: "row" }, text) : number(data, r, i - names, strong ? h("strong", {}, text) : text),
          after?.column === i && h("td", { class: "drawn" }, after.draw(r)),
        ];
      }),
    ),
  );
  const first = h("tbody", {}, rows.slice(0, apart));
  sorter?.take(first, rows);
  const notes = (data.notes || []).map((note) => h("li", {}, prose(note)));
  return [
    scroller(
      h(
        "table",
        { class: `numbers${data.heat ? " is-heat" : ""}${header.length === names ? " is-texts" : ""}` },
        h("caption", { class: "hidden" }, data.title),
        h("thead", {}, head),
        first,
        groups > 0 && h("tbody", { class: "groups" }, rows.slice(apart)),
      ),
    ),
    notes.length > 0 && h("ul", { class: "notes" }, notes),
  ];
}

/** Sorts the rows of a table by a column; a third turn gives the order back in which they came. */
class Sorter {
  constructor(data, count) {
    this.data = data;
    this.count = count;
    this.heads = new Map();
    this.column = null;
    this.down = false;
  }

  button(column, title) {
    return h("button", { type: "button", class: "sort", on: { click: () => this.turn(column) } }, title);
  }

  take(body, rows) {
    this.body = body;
    this.rows = rows;
  }

  turn(column) {
    const first = column >= this.data.grid.names; // numbers: the largest first
    if (this.column !== column) [this.column, this.down] = [column, first];
    else if (this.down === first) this.down = !first;
    else this.column = null;
    const order = Array.from({ length: this.count }, (_, r) => r);
    if (this.column !== null) order.sort((a, b) => this.compare(a, b));
    this.body.append(...order.map((r) => this.rows[r]));
    for (const [i, head] of this.heads) {
      if (i === this.column) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  /** What has no number comes last, whichever way. */
  compare(a, b) {
    const [one, other] = [this.value(a), this.value(b)];
    if (one === other) return a - b;
    if (one === null || other === null) return one === null ? 1 : -1;
    const way = typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true });
    return this.down ? -way : way;
  }

  value(r) {
    const { names, body } = this.data.grid;
    if (this.column >= names) return this.data.rows[r]?.cells[this.column - names]?.value ?? null;
    return body[r][this.column] === "–" ? null : body[r][this.column];
  }
}
