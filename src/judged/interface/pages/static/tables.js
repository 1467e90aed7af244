/* Sort, filter, copy, and save tables; save charts. Tables with several pages are sorted and filtered by links. */
import { createElement } from "./elements.js";

const MAX_UNFILTERED_ROWS = 12; // rows of a table that needs no filter
const MIN_PICKED_COLUMNS = 6; // tables with more have a list of columns to show
const FORMATS = { csv: "CSV", json: "JSON", tex: "LaTeX", md: "Markdown" };

const menu = (description, ...parts) =>
  createElement("details", { class: "save-menu" }, createElement("summary", {}, "Save", createElement("span", { class: "visually-hidden" }, ` ${description}`)), ...parts.flatMap((part) => [part, " "]));
const button = (text, act) => {
  const element = createElement("button", { type: "button" }, text);
  element.addEventListener("click", () => act(element));
  return element;
};

/** URL of a table of this page as a file, with all pages of a long table. */
const downloadUrl = (name, format) => {
  const query = new URLSearchParams(location.search);
  if (document.querySelector("nav.pages")) query.set("page", 0);
  return `${location.pathname}.${encodeURIComponent(name)}.${format}${query.size ? `?${query}` : ""}`;
};

/** Sort key of a cell: its first number, or its text. Empty cells are last. */
const sortKey = (row, column) => {
  const text = row.cells[column]?.innerText.trim() ?? "";
  const number = text.replace("\u2212", "-").replace(/(?<=\d),(?=\d{3})/g, "").match(/^[<+]? ?(-?[\d.]+(?:e[-+]\d+)?)/);
  return { text, number: number ? Number(number[1]) : NaN, none: !text || text === "-" || text === "–" };
};
const sortBy = (table, column, descending) => {
  const sign = descending ? -1 : 1;
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, ...sortKey(row, column) }));
  const numbers = rows.every((keyed) => keyed.none || !Number.isNaN(keyed.number));
  rows.sort((a, b) => a.none - b.none || sign * (numbers ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true })) || 0);
  table.tBodies[0].append(...rows.map((keyed) => keyed.row));
  for (const [i, head] of [...table.tHead.rows[0].cells].entries()) {
    if (i === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
    const arrow = head.querySelector(".arrow");
    if (arrow) arrow.textContent = i === column ? (descending ? "↓" : "↑") : "";
  }
};
const sortable = (table) => {
  for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
    if (!head.textContent.trim()) continue;
    const arrow = createElement("span", { class: "arrow", "aria-hidden": "true" });
    const link = head.querySelector("a"); // a linked head keeps its link and gets a separate button
    const sortButton = createElement("button", { type: "button", class: "sort" }, ...(link ? ["↕"] : head.childNodes), arrow);
    if (link) sortButton.ariaLabel = `Sort by ${head.textContent.trim()}`;
    sortButton.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort");
      const defaultOrder = head.classList.contains("label") ? "ascending" : "descending";
      sortBy(table, column, order ? order === "ascending" : defaultOrder === "descending");
    });
    if (link) head.append(" ", sortButton);
    else head.replaceChildren(sortButton);
  }
};
const filter = (container, table) => {
  const status = createElement("span", { class: "secondary", role: "status" });
  const input = createElement("input", { type: "search", "aria-label": `Filter ${container.ariaLabel}`, placeholder: "Filter rows" });
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    status.textContent = input.value ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });
  container.before(createElement("p", { class: "filter" }, input, " ", status));
};

/** Check boxes that hide columns; the first column stays. Hidden columns are kept for this page until the tab is closed. */
const columnPicker = (container, table) => {
  const key = `judged-hidden ${location.pathname} ${container.dataset.table}`;
  const hidden = new Set(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
  const heads = [...table.tHead.rows[0].cells];
  const names = heads.map((head) => head.textContent.replace(/[↑↓↕]/g, "").trim());
  const show = () => {
    for (const row of table.rows) for (const [i, cell] of [...row.cells].entries()) cell.hidden = hidden.has(names[i]);
    sessionStorage.setItem(key, JSON.stringify([...hidden]));
  };
  const boxes = names.slice(1).filter(Boolean).map((name) => {
    const box = createElement("input", { type: "checkbox" });
    box.checked = !hidden.has(name);
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(name);
      else hidden.add(name);
      show();
    });
    return createElement("label", { class: "checkbox" }, box, ` ${name}`);
  });
  show();
  return createElement("details", { class: "column-picker" }, createElement("summary", {}, "Columns"), createElement("div", { class: "controls" }, ...boxes));
};

for (const container of document.querySelectorAll("main .scroll[data-table]:not(.route *, [data-table=sheet])")) {
  const table = container.querySelector("table");
  const rows = [...table.tBodies[0].rows];
  const isSortable = !table.querySelector("thead a[href*='sort='], tbody [colspan]");
  if (isSortable && rows.length > 2) sortable(table);
  if (isSortable && rows.length > MAX_UNFILTERED_ROWS) filter(container, table);
  const columns = table.tHead.rows[0].cells.length;
  if (columns > MIN_PICKED_COLUMNS && !table.querySelector("[colspan]")) container.before(columnPicker(container, table));
  const copy = button("Copy", async (pressed) => {
    const response = await fetch(downloadUrl(container.dataset.table, "tsv")); // cells with one value each
    await navigator.clipboard.writeText(await response.text());
    pressed.textContent = "Copied";
  });
  const links = Object.entries(FORMATS).map(([format, text]) => createElement("a", { href: downloadUrl(container.dataset.table, format), download: "" }, text));
  container.after(menu(container.ariaLabel, ...(navigator.clipboard ? [copy] : []), ...links));
}

const save = (blob, name) => {
  const link = createElement("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
/** Render with a white background, which does not depend on the theme. */
const picture = async (view, format) => {
  await view.background("white").runAsync();
  const blob = format === "svg" ? new Blob([await view.toSVG()], { type: "image/svg+xml" }) : await new Promise((done) => view.toCanvas(3).then((canvas) => canvas.toBlob(done)));
  await view.background("transparent").runAsync();
  return blob;
};
document.addEventListener("chart-rendered", ({ target, detail: { view } }) => {
  target.parentElement.querySelector(".save-menu.picture")?.remove();
  const name = target.dataset.chart;
  const formatButtons = ["svg", "png"].map((format) => button(format.toUpperCase(), async () => save(await picture(view, format), `${name}.${format}`)));
  const saveMenu = menu(`chart ${name}`, ...formatButtons);
  saveMenu.classList.add("picture");
  target.after(saveMenu);
});
