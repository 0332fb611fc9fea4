"use strict";
// Sorts and filters the table, opens rows, and switches charts and colours. The page is readable without it.

document.documentElement.classList.add("js", "loading");

document.addEventListener("DOMContentLoaded", () => {
  // The table was hidden until now, so that a long one is laid out once, not with each part that arrives.
  document.documentElement.classList.remove("loading");
  theme(document.getElementById("theme"));
  const table = document.querySelector("table.results");
  if (!table) return;
  const groups = [...table.querySelectorAll(".group")];
  const results = [...table.tBodies].filter((body) => !groups.includes(body)).map(prepare);
  sorting(table, results, groups);
  filtering(results, groups);
  tabs([...document.querySelectorAll(".panel")]);
  const follow = () => results.find((result) => `#${result.body.id}` === location.hash)?.show();
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const mark = event.target.closest("g[data-row]");
    if (mark) location.hash = mark.dataset.row;
    // A link to the row that is already in the URL fires no hashchange event, but must open the row too.
    if (mark ?? event.target.closest("a")) setTimeout(follow);
    const copy = event.target.closest(".copy");
    if (copy) {
      navigator.clipboard.writeText(copy.previousElementSibling.textContent).then(() => (copy.textContent = "Copied"));
    }
  });
  follow();
});

function theme(button) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => (button.textContent = `Switch to ${dark() ? "light" : "dark"}`);
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    tell();
  });
  system.addEventListener("change", tell);
  tell();
}

// Shows one chart at a time.
function tabs(panels) {
  if (panels.length < 2) return;
  const list = document.createElement("div");
  list.className = "tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Charts");
  const buttons = panels.map((panel) => {
    const button = document.createElement("button");
    button.type = "button";
    button.id = `${panel.id}-tab`;
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", panel.id);
    button.append(...panel.querySelector("h3").childNodes);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    return button;
  });
  const select = (chosen) => {
    panels.forEach((panel, at) => {
      panel.hidden = at !== chosen;
      buttons[at].setAttribute("aria-selected", String(at === chosen));
      buttons[at].tabIndex = at === chosen ? 0 : -1;
    });
  };
  buttons.forEach((button, at) => {
    button.addEventListener("click", () => select(at));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      const next = (at + step + buttons.length) % buttons.length;
      select(next);
      buttons[next].focus();
    });
  });
  list.append(...buttons);
  panels[0].parentElement.before(list);
  select(0);
}

// Prepares one result: its row, the details that open below it, and its words for the filter.
function prepare(body) {
  const row = body.rows[0];
  const more = body.rows[body.rows.length - 1];
  const name = row.cells[0];
  const button = document.createElement("button");
  const text = document.createElement("span");
  text.append(...name.childNodes);
  button.type = "button";
  button.append(text);
  button.setAttribute("aria-controls", more.id);
  button.setAttribute("aria-expanded", "false");
  name.append(button);
  more.hidden = true;
  const set = (open) => {
    const unread = more.querySelector("noscript");
    if (unread) {
      const read = document.createElement("template");
      read.innerHTML = unread.textContent;
      unread.replaceWith(read.content.querySelector(".parts"));
    }
    more.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };
  row.addEventListener("click", (event) => {
    const selecting = event.target !== button && String(getSelection());
    if (!selecting) set(more.hidden);
  });
  const why = body.rows.length > 2 ? body.rows[1].textContent : "";
  return {
    body,
    keys: [...row.cells].map((cell) => cell.dataset.key ?? cell.textContent),
    words: `${row.textContent} ${why}`.toLowerCase(),
    show() {
      body.hidden = false;
      set(true);
      body.scrollIntoView({ block: "center" });
    },
  };
}

// The rows come grouped by what came of them. Sorting ends that; by problem, it groups them by problem.
function sorting(table, results, groups) {
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
      const ordered = sorted(results, column, sign, numeric ? (a, b) => Number(a) - Number(b) : collator.compare);
      for (const group of groups.splice(0)) group.remove();
      table.append(...ordered.map((result) => result.body));
      table.classList.toggle("grouped", column === 0);
      ordered.forEach(({ body, keys }, at) => body.classList.toggle("begins", ordered[at - 1]?.keys[0] !== keys[0]));
    });
  });
}

// Absent values come last in both directions.
function sorted(results, column, sign, compare) {
  const known = results.filter((result) => result.keys[column] !== "");
  const absent = results.filter((result) => result.keys[column] === "");
  known.sort((a, b) => sign * compare(a.keys[column], b.keys[column]));
  return [...known, ...absent];
}

function filtering(results, groups) {
  const words = document.getElementById("words");
  const choices = [...document.querySelectorAll("select[data-column]")];
  const chips = [...document.querySelectorAll("button[data-column]")];
  const shown = document.getElementById("shown");
  const marks = Map.groupBy(document.querySelectorAll("g[data-row]"), (mark) => mark.dataset.row);
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = Map.groupBy(chips.filter((chip) => chip.ariaPressed === "true"), (chip) => chip.dataset.column);
    let count = 0;
    for (const { body, words: text } of results) {
      const fits =
        wanted.every((word) => text.includes(word)) &&
        choices.every((choice) => !choice.value || choice.value === body.dataset[choice.dataset.column]) &&
        [...pressed].every(([column, of]) => of.some((chip) => chip.value === body.dataset[column]));
      body.hidden = !fits;
      count += fits;
      for (const mark of marks.get(body.id) ?? []) mark.classList.toggle("out", !fits);
    }
    const left = new Set(results.filter(({ body }) => !body.hidden).map(({ body }) => body.dataset.group));
    for (const group of groups) group.hidden = !left.has(group.dataset.group);
    shown.textContent = `${count} of ${results.length} shown`;
  };
  for (const control of [words, ...choices]) control.addEventListener("input", apply);
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.ariaPressed = String(chip.ariaPressed !== "true");
      apply();
    });
  }
  apply();
}
