"use strict";
// The table of samples: a click on a heading sorts, the field above filters. Without
// this script it is a plain table.
const table = document.getElementById("samples");
const body = table.tBodies[0];
const field = document.getElementById("filter");
const shown = document.getElementById("shown");
const rows = Array.from(body.rows);
const texts = rows.map((row) => row.textContent.toLowerCase());

function filter() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  rows.forEach((row, k) => {
    row.hidden = !words.every((word) => texts[k].includes(word));
    count += row.hidden ? 0 : 1;
  });
  shown.textContent = `${count} of ${rows.length}`;
}

function sort(heading) {
  const column = heading.cellIndex;
  const down = heading.getAttribute("aria-sort") === "ascending";
  const numeric = heading.dataset.kind === "number";
  const text = (row) => row.cells[column].textContent;
  const compare = numeric
    ? (a, b) => Number(text(a)) - Number(text(b))
    : (a, b) => text(a).localeCompare(text(b), undefined, { numeric: true });
  const sorted = rows.slice().sort((a, b) => (down ? -compare(a, b) : compare(a, b)));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...sorted);
}

for (const heading of table.tHead.rows[0].cells) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => sort(heading));
}
field.addEventListener("input", filter);
filter();
