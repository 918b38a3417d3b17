// The page of a model: another one beside it, chosen by the reader and kept in the address.
const choose = document.getElementById("choose");
if (choose && globalThis.profiles) {
  const select = document.getElementById("other");
  const show = () => {
    const other = profiles[select.value];
    if (!other) return;
    for (const id of ["other-key", "other-head"]) {
      const place = document.getElementById(id);
      (place.querySelector("button") ?? place).textContent = other.name;
    }
    for (const row of document.querySelectorAll("tr[data-benchmark]")) {
      const [text, rank, place] = other.on[row.dataset.benchmark] ?? ["–", "–", null];
      row.cells[4].textContent = text;
      row.cells[5].textContent = rank;
      const svg = row.querySelector("svg");
      svg?.querySelector(".beside")?.remove();
      if (!svg || place === null) continue;
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "path");
      mark.setAttribute("class", "beside");
      mark.setAttribute("d", `M${place} 3l4 6l-4 6l-4 -6z`);
      svg.insertBefore(mark, svg.querySelector("circle"));
    }
  };
  const asked = new URLSearchParams(location.hash.slice(1)).get("with");
  if (asked && asked !== choose.dataset.own && profiles[asked]) select.value = asked;
  choose.hidden = false;
  select.addEventListener("change", () => {
    history.replaceState(null, "", `#with=${select.value}`);
    show();
  });
  if (asked) show();
}
