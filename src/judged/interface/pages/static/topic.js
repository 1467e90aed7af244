/* The page of one topic: lines between the lists, a document marked in both, and texts that open in place. */
import { ask, make, marked, wording } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST = 10_000_000; // characters of a text that one answer has at most
const lists = document.querySelector(".lists.two");
const canvas = lists?.querySelector(".moves") ?? null;

/** Give the pairs of one document that both lists show: [left, right]. */
const pairs = () =>
  [...lists.querySelectorAll(".document[id^='a-']")]
    .map((left) => [left, document.getElementById(`b-${left.dataset.key}`)])
    .filter(([, right]) => right);

/** Draw a line from each document on the left to the same one on the right. */
const drawMoves = () => {
  const box = canvas.getBoundingClientRect();
  if (!box.width) {
    canvas.replaceChildren();
    return;
  }
  canvas.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  const paths = pairs().map(([left, right]) => {
    const [from, to] = [left, right].map((one) => {
      const place = one.querySelector(".what").getBoundingClientRect();
      return place.top - box.top + Math.min(place.height / 2, 10);
    });
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", `M 3 ${from} C ${box.width / 2} ${from} ${box.width / 2} ${to} ${box.width - 6} ${to}`);
    path.dataset.key = left.dataset.key;
    path.classList.toggle("linked", left.classList.contains("linked"));
    return path;
  });
  canvas.replaceChildren(...paths);
};

/** Mark a document in both lists, and the line between; none for null. */
const mark = (key) => {
  for (const one of lists.querySelectorAll("[data-key]")) one.classList.toggle("linked", one.dataset.key === key);
  const line = canvas.querySelector(".linked");
  if (line) canvas.append(line);
};

const keyOf = (event) => event.target.closest?.(".document")?.dataset.key ?? null;

if (lists && canvas) {
  let waiting = 0;
  const soon = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(drawMoves);
  };
  const watch = new ResizeObserver(soon);
  watch.observe(canvas);
  for (const one of lists.querySelectorAll(".documents")) watch.observe(one);
  lists.addEventListener("pointerover", (event) => mark(keyOf(event)));
  lists.addEventListener("pointerleave", () => mark(document.activeElement?.closest?.(".document")?.dataset.key ?? null));
  lists.addEventListener("focusin", (event) => mark(keyOf(event)));
  lists.addEventListener("focusout", (event) => {
    if (!event.relatedTarget?.closest?.(".lists")) mark(null);
  });
  lists.addEventListener("toggle", soon, true);
  drawMoves();
}

/** Show the text of a document in its place, as text: its beginning, or so many characters. */
const read = async (place, { document: id, topic }, length) => {
  const query = new URLSearchParams({ doc_id: id, topic, ...(length ? { length } : {}) });
  place.setAttribute("aria-busy", "true");
  try {
    const found = await ask(`/api/v1/document?${query}`);
    const pieces = found.text ? marked(found.pieces ?? [found.text]) : ["The text is empty."];
    const parts = [make("div", { class: "text", tabindex: 0, role: "region", "aria-label": `Text of ${id}` }, ...pieces)];
    if (found.title) parts.unshift(make("p", { class: "title" }, found.title));
    if (found.text.length < found.characters && [...found.text].length < found.characters) {
      const more = make("button", { type: "button" }, `Show all ${found.characters.toLocaleString("en")} characters`);
      more.addEventListener("click", async () => {
        await read(place, { document: id, topic }, Math.min(found.characters, MOST));
        place.querySelector(".text").focus();
      });
      parts.push(more);
    }
    place.replaceChildren(...parts);
  } catch (problem) {
    place.replaceChildren(make("p", { class: "problem" }, `The text cannot be shown: ${wording(problem)}`));
  }
  place.removeAttribute("aria-busy");
};

document.addEventListener(
  "toggle",
  (event) => {
    const details = event.target;
    if (!details.open || details.dataset.document === undefined || details.dataset.read) return;
    details.dataset.read = "yes";
    read(details.querySelector(".said"), details.dataset);
  },
  true,
);

/* Grading in place: a digit grades the document in which the focus is, and s saves the grade that was tried. */
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.matches("input, select, textarea")) return;
  const grades = [...(event.target.closest(".document, td, th")?.querySelectorAll("[data-grade]") ?? [])];
  const chosen = grades.find((one) => one.dataset.grade === event.key);
  if (chosen) chosen.click();
  else if (event.key === "s") document.getElementById("save")?.click();
});
