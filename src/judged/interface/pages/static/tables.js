/* Every table can be sorted, filtered, copied and saved; every chart saved. Long tables that come page by page do the first two by links. */
import { make } from "./elements.js";

const FEW = 12; // rows of a table that needs no filter
const FORMS = { csv: "CSV", json: "JSON", tex: "LaTeX", md: "Markdown" };

const menu = (what, ...parts) =>
  make("details", { class: "take" }, make("summary", {}, "Save", make("span", { class: "visually-hidden" }, ` ${what}`)), ...parts.flatMap((part) => [part, " "]));
const button = (text, act) => {
  const made = make("button", { type: "button" }, text);
  made.addEventListener("click", () => act(made));
  return made;
};

/** Where a table of this page is as a file; of a long one all pages. */
const address = (name, form) => {
  const query = new URLSearchParams(location.search);
  if (document.querySelector("nav.pages")) query.set("page", 0);
  return `${location.pathname}.${encodeURIComponent(name)}.${form}${query.size ? `?${query}` : ""}`;
};

/** What a cell is sorted by: its first number, or its text; nothing comes last. */
const keyOf = (row, at) => {
  const text = row.cells[at]?.innerText.trim() ?? "";
  const number = text.replace("\u2212", "-").replace(/(?<=\d),(?=\d{3})/g, "").match(/^[<+]? ?(-?[\d.]+(?:e[-+]\d+)?)/);
  return { text, number: number ? Number(number[1]) : NaN, none: !text || text === "-" || text === "–" };
};
const sortBy = (table, at, falling) => {
  const side = falling ? -1 : 1;
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, ...keyOf(row, at) }));
  const numbers = rows.every((one) => one.none || !Number.isNaN(one.number));
  rows.sort((a, b) => a.none - b.none || side * (numbers ? a.number - b.number : a.text.localeCompare(b.text, "en", { numeric: true })) || 0);
  table.tBodies[0].append(...rows.map((one) => one.row));
  for (const [place, head] of [...table.tHead.rows[0].cells].entries()) {
    if (place === at) head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
    const arrow = head.querySelector(".arrow");
    if (arrow) arrow.textContent = place === at ? (falling ? "↓" : "↑") : "";
  }
};
const sortable = (table) => {
  for (const [at, head] of [...table.tHead.rows[0].cells].entries()) {
    if (!head.textContent.trim()) continue;
    const arrow = make("span", { class: "arrow", "aria-hidden": "true" });
    const link = head.querySelector("a"); // it stays one, beside a button of its own
    const made = make("button", { type: "button", class: "sort" }, ...(link ? ["↕"] : head.childNodes), arrow);
    if (link) made.ariaLabel = `Sort by ${head.textContent.trim()}`;
    made.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const first = head.classList.contains("label") ? "ascending" : "descending";
      sortBy(table, at, now ? now === "ascending" : first === "descending");
    });
    if (link) head.append(" ", made);
    else head.replaceChildren(made);
  }
};
const filter = (place, table) => {
  const said = make("span", { class: "rest", role: "status" });
  const input = make("input", { type: "search", "aria-label": `Filter ${place.ariaLabel}`, placeholder: "Filter rows" });
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    said.textContent = input.value ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });
  place.before(make("p", { class: "filter" }, input, " ", said));
};

for (const place of document.querySelectorAll("main .scroll[data-table]:not(.route *, [data-table=sheet])")) {
  const table = place.querySelector("table");
  const rows = [...table.tBodies[0].rows];
  const own = !table.querySelector("thead a[href*='sort='], tbody [colspan]");
  if (own && rows.length > 2) sortable(table);
  if (own && rows.length > FEW) filter(place, table);
  const copy = button("Copy", async (pressed) => {
    const shown = [...table.rows].filter((row) => !row.hidden);
    const text = shown.map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim()).join("\t")).join("\n");
    await navigator.clipboard.writeText(text);
    pressed.textContent = "Copied";
  });
  const links = Object.entries(FORMS).map(([form, text]) => make("a", { href: address(place.dataset.table, form), download: "" }, text));
  place.after(menu(place.ariaLabel, ...(navigator.clipboard ? [copy] : []), ...links));
}

const save = (blob, name) => {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
/** Draw on white, as the look of the page belongs to the page. */
const picture = async (view, form) => {
  await view.background("white").runAsync();
  const blob = form === "svg" ? new Blob([await view.toSVG()], { type: "image/svg+xml" }) : await new Promise((done) => view.toCanvas(3).then((canvas) => canvas.toBlob(done)));
  await view.background("transparent").runAsync();
  return blob;
};
document.addEventListener("drawn", ({ target, detail: { view } }) => {
  target.parentElement.querySelector(".take.picture")?.remove();
  const name = target.dataset.chart;
  const made = ["svg", "png"].map((form) => button(form.toUpperCase(), async () => save(await picture(view, form), `${name}.${form}`)));
  const saved = menu(`chart ${name}`, ...made);
  saved.classList.add("picture");
  target.after(saved);
});
