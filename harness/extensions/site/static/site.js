// Tables that a click sorts. Without scripts they are plain tables.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const number = (text) => parseFloat(text.replace(/,/g, "").replace(/^[<≤]/, ""));
  heads.forEach((head, i) => {
    if (head.hasAttribute("data-fixed") || !head.textContent.trim()) return;
    const link = head.querySelector("a");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    if (link) {
      button.setAttribute("aria-label", `Sort by ${link.textContent}`);
      head.append(" ", button);
    } else {
      button.append(...head.childNodes);
      head.append(button);
    }
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map((row) => [row, row.cells[i].textContent.trim()]);
      rows.sort(([, a], [, b]) => {
        const x = number(a);
        const y = number(b);
        if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
        const order = isNaN(x) || /^\D*$/.test(a) ? a.localeCompare(b) : x - y;
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows.map(([row]) => row));
    });
  });
}
