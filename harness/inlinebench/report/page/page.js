"use strict";
// Sorts and filters the table, opens rows, and switches between light and dark mode. The page is readable without it.

document.documentElement.classList.add("js");

document.addEventListener("DOMContentLoaded", () => {
  theme(document.getElementById("theme"));
  const table = document.querySelector("table.results");
  if (!table) return;
  const results = [...table.tBodies].map(prepare);
  sorting(table, results);
  filtering(results);
  const follow = () => results.find((result) => `#${result.body.id}` === location.hash)?.show();
  window.addEventListener("hashchange", follow);
  // A link to the row that is already in the URL fires no hashchange event, but must open the row too.
  document.addEventListener("click", (event) => {
    if (event.target.closest("figure a")) setTimeout(follow);
  });
  follow();
});

function theme(button) {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const tell = () => button.setAttribute("aria-pressed", String(dark()));
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    tell();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
  tell();
}

// Prepares one result: its row, the details that open below it, and its words for the filter.
function prepare(body) {
  const [row, more] = body.rows;
  const details = more.querySelector("details");
  const name = row.cells[0];
  const button = document.createElement("button");
  button.type = "button";
  button.append(...name.childNodes);
  button.setAttribute("aria-controls", more.id);
  name.append(button);
  const set = (open) => {
    details.open = open;
    more.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
  };
  set(false);
  row.addEventListener("click", (event) => {
    const selecting = event.target !== button && String(getSelection());
    if (!selecting) set(!details.open);
  });
  return {
    body,
    keys: [...row.cells].map((cell) => cell.dataset.key),
    words: `${row.textContent} ${details.querySelector("summary").textContent}`.toLowerCase(),
    show() {
      set(true);
      body.scrollIntoView({ block: "nearest" });
    },
  };
}

function sorting(table, results) {
  const heads = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator(undefined, { numeric: true });
  heads.forEach((head, column) => {
    const numeric = head.classList.contains("number");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      table.append(...sorted(results, column, sign, numeric ? (a, b) => Number(a) - Number(b) : collator.compare));
    });
  });
}

// Absent values come last in both directions.
function sorted(results, column, sign, compare) {
  const known = results.filter((result) => result.keys[column] !== "");
  const absent = results.filter((result) => result.keys[column] === "");
  known.sort((a, b) => sign * compare(a.keys[column], b.keys[column]));
  return [...known, ...absent].map((result) => result.body);
}

function filtering(results) {
  const words = document.getElementById("words");
  const choices = [...document.querySelectorAll("select[data-column]")];
  const shown = document.getElementById("shown");
  const marks = Map.groupBy(document.querySelectorAll("figure a"), (mark) => mark.getAttribute("href"));
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { body, words: text } of results) {
      const fits =
        wanted.every((word) => text.includes(word)) &&
        choices.every((choice) => !choice.value || choice.value === body.dataset[choice.dataset.column]);
      body.hidden = !fits;
      count += fits;
      for (const mark of marks.get(`#${body.id}`) ?? []) mark.classList.toggle("out", !fits);
    }
    shown.textContent = `${count} of ${results.length} shown`;
  };
  for (const control of [words, ...choices]) control.addEventListener("input", apply);
  apply();
}
