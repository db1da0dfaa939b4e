"use strict";
(() => {
  // A click on the head of a column sorts the rows of its table; the next one turns their order.
  const number = (text) => Number(text.replaceAll(",", ""));
  const value = (row, index) => {
    const { dataset, textContent } = row.cells[index];
    const parsed = dataset.v === undefined ? number(textContent) : Number(dataset.v);
    return Number.isNaN(parsed) ? textContent : parsed;
  };
  const compare = (a, b) => (typeof a === typeof b
    ? (typeof a === "number" ? b - a : a.localeCompare(b, "en", { numeric: true }))
    : typeof a === "number" ? -1 : 1);
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    const heads = [...table.querySelectorAll("th")];
    heads.forEach((head, index) => {
      // A bar shows what the columns beside it have as numbers.
      if ([...body.rows].some((row) => row.cells[index].querySelector("svg"))) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => {
        const back = head.getAttribute("aria-sort") !== null;
        const turned = back && head.dataset.turned !== "true";
        heads.forEach((other) => { other.removeAttribute("aria-sort"); delete other.dataset.turned; });
        head.dataset.turned = String(turned);
        head.setAttribute("aria-sort", head.classList.contains("n") !== turned ? "descending" : "ascending");
        const rows = [...body.rows].sort((a, b) => (turned ? -1 : 1) * compare(value(a, index), value(b, index)));
        body.append(...rows);
      });
      head.replaceChildren(button);
    });
  }
})();
