for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const number = (text) => parseFloat(text.replace(/,/g, ""));
  heads.forEach((head, i) => {
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map((row) => [row, row.cells[i].textContent.trim()]);
      rows.sort(([, a], [, b]) => {
        const x = number(a), y = number(b);
        if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
        const order = isNaN(x) ? a.localeCompare(b) : x - y;
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows.map(([row]) => row));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
    });
  });
}
