// What stands below a picture: bars, sheets, facts.

import { h, number, said, set } from "./dom.js";

const ROWS = 60;
const WORDS = { true: "yes", false: "no", True: "yes", False: "no" };

export function drawFacts(element, facts) {
  const entries = Object.entries(facts);
  set(
    element,
    entries.length > 0 &&
      h(
        "dl",
        { class: "chips" },
        entries.map(([name, value]) =>
          h("div", {}, h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, said(WORDS[value] ?? value))),
        ),
      ),
  );
}

export function drawBars(element, all) {
  set(
    element,
    all.map((bars) => {
      const entries = Object.entries(bars.values);
      const most = Math.max(...entries.map(([, value]) => value), 0) || 1;
      const scale = most <= 1 ? 1 : most;
      const rows = entries.slice(0, 40).map(([name, value]) => {
        const bar = h("span", { class: `bar-fill${bars.highlight === name ? " best" : ""}` });
        bar.style.width = `${Math.max(0, Math.min(1, value / scale)) * 100}%`;
        return h(
          "div",
          { class: "bar-row" },
          h("dt", {}, said(name)),
          h("dd", {}, h("span", { class: "bar-track" }, bar), h("span", { class: "bar-value" }, number(value))),
        );
      });
      return h("section", { class: "bars" }, h("h3", {}, bars.title), h("dl", {}, rows));
    }),
  );
}

/** Sheets; `choose(agent)` is called where a row's name is an agent. */
export function drawSheets(element, sheets, agents, selected, choose) {
  const scrolled = [...element.querySelectorAll(".sheet")].map((box) => [
    box.scrollLeft,
    box.scrollLeft + box.clientWidth >= box.scrollWidth - 4,
  ]);
  set(
    element,
    sheets.map((sheet) => {
      const numbers = sheet.heat ? sheet.rows.flatMap((row) => row.slice(1).map(Number)).filter(Number.isFinite) : [];
      const most = numbers.reduce((all, one) => Math.max(all, one), 3);
      const shown = sheet.rows.slice(0, ROWS);
      const rows = shown.map((row) =>
        h(
          "tr",
          { class: row[0] === selected ? "selected" : null },
          row.map((cell, i) => {
            if (i === 0)
              return h(
                "th",
                { scope: "row", class: cell.includes("\n") ? "lines" : null },
                agents.has(cell)
                  ? h("button", { type: "button", class: "plain", on: { click: () => choose(cell) } }, said(cell))
                  : said(cell),
              );
            const box = h("td", { class: sheet.heat ? "heat" : i === row.length - 1 ? "last" : null }, said(cell));
            if (sheet.heat && cell !== "" && Number(cell) > 0) {
              box.style.setProperty("--heat", String(0.12 + 0.88 * (Number(cell) / most)));
              box.classList.add(Number(cell) / most > 0.55 ? "hot" : "warm");
            }
            return box;
          }),
        ),
      );
      const head =
        sheet.columns.some(Boolean) &&
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            sheet.columns.map((name) => h("th", { scope: "col" }, said(name))),
          ),
        );
      const more =
        sheet.rows.length > ROWS && h("p", { class: "muted" }, `${sheet.rows.length - ROWS} more rows are not shown.`);
      const kind = sheet.heat ? " is-heat" : sheet.rows.every((row) => row.length === 1) ? " is-text" : "";
      return h(
        "section",
        { class: "sheet-box" },
        h("h3", {}, sheet.title),
        h(
          "div",
          {
            class: `scroll sheet${kind}`,
            tabindex: 0,
            role: "region",
            "aria-label": sheet.title,
          },
          h("table", {}, head, h("tbody", {}, rows)),
        ),
        sheet.note && h("p", { class: "sheet-note" }, sheet.note),
        more,
      );
    }),
  );
  element.querySelectorAll(".sheet").forEach((box, i) => {
    const newest = box.matches(".is-heat, .is-text") ? 0 : box.scrollWidth;
    box.scrollLeft = scrolled[i] && !scrolled[i][1] ? scrolled[i][0] : newest;
  });
}
