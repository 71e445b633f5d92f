"use strict";

// Sorts a table by a column: numbers from the largest, texts from A, and the other way at the second click.
function sortBy(header) {
  const table = header.closest("table");
  const at = header.cellIndex;
  const number = header.classList.contains("number");
  const first = number ? "descending" : "ascending";
  const second = number ? "ascending" : "descending";
  const order = header.getAttribute("aria-sort") === first ? second : first;
  for (const each of header.parentNode.cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const value = (row) => {
    const cell = row.cells[at];
    return number ? Number(cell.dataset.value ?? cell.textContent) : cell.textContent.trim();
  };
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => sign * (number ? value(a) - value(b) : compare(value(a), value(b))));
  table.tBodies[0].append(...rows);
}

// Shows the rows of a table that contain all words and have the status, and their cards.
function filterRows(box) {
  const rows = [...document.getElementById(box.dataset.table).tBodies[0].rows];
  const words = box.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
  const status = box.querySelector("select")?.value ?? "";
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word)) || (status !== "" && row.dataset.status !== status);
    shown += !row.hidden;
    if (row.dataset.card) document.getElementById(row.dataset.card).hidden = row.hidden;
  }
  box.querySelector("output").textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
}

async function copyText(button) {
  const text = button.parentNode.querySelector("pre");
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(text); // the browser refuses; the user can press Ctrl-C
    button.textContent = "Selected";
  }
}

// A link to a bug opens its card.
function openTarget() {
  const card = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (card instanceof HTMLDetailsElement) card.open = true;
}

for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}
for (const box of document.querySelectorAll(".filter")) {
  if (document.getElementById(box.dataset.table).tBodies[0].rows.length > 1) box.hidden = false;
  box.addEventListener("input", () => filterRows(box));
}
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => copyText(button));
}
addEventListener("hashchange", openTarget);
openTarget();
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details.bug, .trust details")) each.open = true;
});

// `ast`: Vega interprets expressions, because the page's policy forbids the evaluation of text.
const documents = document.getElementById("plots");
if (documents) {
  const plots = JSON.parse(documents.textContent);
  const drawn = [...document.querySelectorAll(".plot")].map((place) =>
    vegaEmbed(place, plots[place.dataset.plot], { ast: true, actions: false, renderer: "svg", defaultStyle: false }),
  );
  Promise.all(drawn).then(() => document.documentElement.classList.add("drawn"));
} else {
  document.documentElement.classList.add("drawn");
}
