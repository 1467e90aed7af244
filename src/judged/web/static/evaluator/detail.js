/* How a number comes about: the definition, the lines with numbers put in, the sheets, what each rank contributes. */
import { draw, make, number } from "./dom.js";

const readable = (name) => name.replaceAll("_", " ");

const cell = (value, column) => {
  if (value === null) return column === "grade" ? "-" : "";
  return typeof value === "number" ? number(value) : value;
};

const isLabel = (name) => name === "document";

const scrolling = (label, table) => make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);

const head = (columns) =>
  make("thead", {}, make("tr", {}, ...columns.map((name) =>
    make("th", { scope: "col", class: isLabel(name) ? "label" : null, text: readable(name) }))));

/** A sheet as a table; how its columns come about is among the lines. */
const sheet = ({ title, columns, rows }) => {
  if (columns.length === 0) return null;
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((value, at) =>
      make("td", { class: isLabel(columns[at]) ? "label" : null, text: cell(value, columns[at]) }))));
  const table = make("table", {}, make("caption", { text: title || "working" }), head(columns), make("tbody", {}, ...body));
  return make("div", { class: "sheet" }, scrolling(title || "working", table));
};

/** One bar a rank, from the zero line to the left or right. */
const share = (value, ends) => {
  const at = (one) => 100 * (one - ends.low) / (ends.high - ends.low);
  const [left, right] = [Math.min(at(0), at(value)), Math.max(at(0), at(value))];
  return draw("svg", { class: "share", width: "100%", height: 12, "aria-hidden": "true" },
    draw("rect", { class: value < 0 ? "loss" : "gain", x: `${left}%`, width: `${right - left}%`, height: 12 }));
};

/** The ends that all bars share: zero is always among them. */
const endsOf = (lists) => {
  const values = lists.flatMap((one) => one.contributions.map(({ value }) => value ?? 0));
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  return high > low ? { low, high } : { low: 0, high: 1 };
};

const contributionHead = () => {
  const made = head(["rank", "document", "contribution"]);
  made.querySelector("th:last-child").colSpan = 2;
  return made;
};

const contributions = (list, ends) => {
  if (list.contributions.length === 0) return null;
  const rows = list.contributions.map(({ rank, doc, value }) =>
    make("tr", {}, make("td", { text: String(rank) }), make("td", { class: "label", text: doc }),
      make("td", { class: "shares" }, share(value ?? 0, ends)), make("td", { text: number(value) })));
  return make("div", { class: "contributions" }, scrolling(list.contributions_are,
    make("table", {}, make("caption", { text: list.contributions_are }), contributionHead(), make("tbody", {}, ...rows))));
};

/** The parts of one list, for reuse on other pages. */
export const working = (list, ends = endsOf([list])) => [
  make("ol", { class: "lines" }, ...list.lines.map((text) => make("li", {}, make("code", { text })))),
  contributions(list, ends),
  ...list.explanation.sheets.map(sheet),
].filter(Boolean);

/** Everything that is shown below a measure that is open. */
export const details = (answer) => {
  const ends = endsOf(answer.lists);
  const names = ["List A", "List B"];
  const two = answer.lists.length > 1;
  return [
    make("p", { class: "definition", text: answer.definition }),
    make("div", { class: two ? "workings two" : "workings" }, ...answer.lists.map((list, at) =>
      make("section", { class: "working", "aria-label": two ? names[at] : "Working" },
        two ? make("h4", { text: `${names[at]}: ${number(list.value)}` }) : null, ...working(list, ends)))),
    make("p", { class: "learn" }, make("a", { href: `/learn/${encodeURIComponent(answer.family)}`, text: `More about ${answer.family}` })),
  ];
};

