// Functions for tests of a page. Each returns what is visible.

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const seen = (selector) => all(selector).filter((each) => each.checkVisibility());
const head = (name) => all(".results > thead th").find((each) => each.innerText.trim() === name);

const problems = () => seen(".results .row").map((row) => row.cells[0].innerText);
const column = (name) => all(".results .row").map((row) => row.cells[head(name).cellIndex].innerText);
const sorts = () => all("[aria-sort]").map((each) => [each.innerText.trim(), each.ariaSort]);
const names = () =>
  all(".results > tbody").map((body) => {
    const [problem, solution] = body.rows[0].cells;
    return [`${problem.innerText}/${solution.innerText}`, body.querySelector("h3").innerText];
  });
const state = (row) => {
  const body = document.getElementById(row);
  return [body.querySelector(".row button").ariaExpanded, seen(`#${row} .parts`).length > 0];
};
const opened = () => seen(".more h3").map((each) => each.innerText);
const toggleAll = () => all(".row button").forEach((button) => button.click());
const focused = () => {
  const at = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  return [at.id || at.className || at.innerText.trim(), outlineStyle !== "none" && parseFloat(outlineWidth) >= 1];
};
const colours = () => [
  getComputedStyle(document.body).backgroundColor,
  getComputedStyle(document.querySelector("#shares .wide g path")).fill,
];

function clickFirstMark() {
  const click = new MouseEvent("click", { bubbles: true, cancelable: true });
  document.querySelector("#shares .wide g").dispatchEvent(click);
  return new Promise((done) => setTimeout(done, 100));
}

const chips = () => all(".chips button").map((chip) => [chip.value, chip.ariaPressed]);
const press = (value) => document.querySelector(`.chips [value=${value}]`).click();
const cut = () =>
  seen(".results th, .results td").filter((cell) => {
    const { left, right } = cell.getBoundingClientRect();
    return left < 0 || right > innerWidth || cell.scrollWidth > cell.clientWidth + 1;
  }).length;

// Returns overlapping texts of charts. Boxes may overlap a little, because they are higher than letters.
function overlaps() {
  const meet = (p, q) => p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 4 && q.top < p.bottom - 4;
  return seen("figure svg").flatMap((svg) => {
    const boxes = all("text", svg).map((text) => [text.textContent, text.getBoundingClientRect()]);
    return boxes.flatMap(([a, p], at) =>
      boxes.slice(at + 1).filter(([, q]) => meet(p, q)).map(([b]) => `${a} / ${b}`));
  });
}

// Returns the least contrast of any text with its background.
function contrast() {
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return colour.startsWith("rgba") && colour.endsWith(" 0)") ? behind(element.parentElement) : colour;
  };
  const texts = seen("p, h1, h2, h3, h4, th, td, li, dt, dd, span, a, code, small, summary, pre, button, label, output, figcaption");
  return Math.min(...texts.map((each) => {
    const [low, high] = [getComputedStyle(each).color, behind(each)].map(light).sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  }));
}
