"use strict";
// A click on the head of a column sorts its table: numbers by size, texts by the alphabet, gaps last.
const collator = new Intl.Collator("en", {numeric: true});
function keyOf(cell) {
  // What is shown is what is sorted by: numbers without their signs for "about" and "outside".
  const text = cell.textContent.trim(), number = Number(text.replace(/[~*,+]/g, ""));
  return text === "" || text === "–" ? null : Number.isNaN(number) ? text : number;
}
function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
}
function sortTable(table, header) {
  const next = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", next);
  const body = table.tBodies[0], sign = next === "ascending" ? 1 : -1;
  const keyed = [...body.rows].map((row) => [keyOf(row.cells[header.cellIndex]), row]);
  keyed.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b));
  body.append(...keyed.map(([, row]) => row));
}
for (const table of document.querySelectorAll("table.sortable"))
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.addEventListener("click", () => sortTable(table, header));
  }
