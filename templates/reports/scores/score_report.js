"use strict";
// A click on a column's head sorts by it; a second click turns the order round. What has no value stays last.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, at) => {
    const button = head.querySelector("button");
    if (!button) { return; }
    button.addEventListener("click", () => {
      const first = head.dataset.first || "descending";
      const turned = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? turned : first;
      const sign = order === "ascending" ? 1 : -1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const key = (row) => row.cells[at].dataset.sort;
      const byText = head.dataset.kind === "text";
      const rows = Array.from(body.rows);
      rows.sort((one, other) => {
        const [a, b] = [key(one), key(other)];
        if (a === "" || b === "") { return (a === "") - (b === ""); }
        return sign * (byText ? a.localeCompare(b) : Number(a) - Number(b));
      });
      body.append(...rows);
    });
  });
}
