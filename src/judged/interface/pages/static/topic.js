/* Page of one topic: lines between the lists, a document marked in both lists, and texts that open in place. */
import { requestJson, createElement, highlightMatches, formatError } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
const MAX_CHARACTERS = 10_000_000; // per response of the API
const lists = document.querySelector(".lists.two");
const lines = lists?.querySelector(".moves") ?? null;

/** The documents in both lists, as [left, right] elements. */
const documentPairs = () =>
  [...lists.querySelectorAll(".document[id^='a-']")]
    .map((left) => [left, document.getElementById(`b-${left.dataset.key}`)])
    .filter(([, right]) => right);

/** Draw a line from each document on the left to the same document on the right. */
const drawMoves = () => {
  const box = lines.getBoundingClientRect();
  if (!box.width) {
    lines.replaceChildren();
    return;
  }
  lines.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  const paths = documentPairs().map(([left, right]) => {
    const [from, to] = [left, right].map((element) => {
      const rectangle = element.querySelector(".document-title").getBoundingClientRect();
      return rectangle.top - box.top + Math.min(rectangle.height / 2, 10);
    });
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", `M 3 ${from} C ${box.width / 2} ${from} ${box.width / 2} ${to} ${box.width - 6} ${to}`);
    path.dataset.key = left.dataset.key;
    path.classList.toggle("linked", left.classList.contains("linked"));
    return path;
  });
  lines.replaceChildren(...paths);
};

/** Mark a document in both lists, and its line; null removes the mark. */
const markDocument = (key) => {
  for (const element of lists.querySelectorAll("[data-key]")) element.classList.toggle("linked", element.dataset.key === key);
  const line = lines.querySelector(".linked");
  if (line) lines.append(line);
};

const keyOf = (event) => event.target.closest?.(".document")?.dataset.key ?? null;

if (lists && lines) {
  let frame = 0;
  const scheduleDraw = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(drawMoves);
  };
  const observer = new ResizeObserver(scheduleDraw);
  observer.observe(lines);
  for (const element of lists.querySelectorAll(".documents")) observer.observe(element);
  lists.addEventListener("pointerover", (event) => markDocument(keyOf(event)));
  lists.addEventListener("pointerleave", () => markDocument(document.activeElement?.closest?.(".document")?.dataset.key ?? null));
  lists.addEventListener("focusin", (event) => markDocument(keyOf(event)));
  lists.addEventListener("focusout", (event) => {
    if (!event.relatedTarget?.closest?.(".lists")) markDocument(null);
  });
  lists.addEventListener("toggle", scheduleDraw, true);
  drawMoves();
}

/** Show the text of a document as plain text: its beginning, or `length` characters. */
const read = async (container, { document: id, topic }, length) => {
  const query = new URLSearchParams({ doc_id: id, topic, ...(length ? { length } : {}) });
  container.setAttribute("aria-busy", "true");
  try {
    const documentText = await requestJson(`/api/v1/document?${query}`);
    const pieces = documentText.text ? highlightMatches(documentText.pieces ?? [documentText.text]) : ["The text is empty."];
    const parts = [createElement("div", { class: "text", tabindex: 0, role: "region", "aria-label": `Text of ${id}` }, ...pieces)];
    if (documentText.title) parts.unshift(createElement("p", { class: "title" }, documentText.title));
    if (documentText.text.length < documentText.characters && [...documentText.text].length < documentText.characters) {
      const more = createElement("button", { type: "button" }, `Show all ${documentText.characters.toLocaleString("en")} characters`);
      more.addEventListener("click", async () => {
        await read(container, { document: id, topic }, Math.min(documentText.characters, MAX_CHARACTERS));
        container.querySelector(".text").focus();
      });
      parts.push(more);
    }
    container.replaceChildren(...parts);
  } catch (problem) {
    container.replaceChildren(createElement("p", { class: "problem" }, `The text cannot be shown: ${formatError(problem)}`));
  }
  container.removeAttribute("aria-busy");
};

document.addEventListener(
  "toggle",
  (event) => {
    const details = event.target;
    if (!details.open || details.dataset.document === undefined || details.dataset.read) return;
    details.dataset.read = "yes";
    read(details.querySelector(".document-text"), details.dataset);
  },
  true,
);

/* Grading in place: a digit grades the focused document, and s saves the grade. */
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.matches("input, select, textarea")) return;
  const grades = [...(event.target.closest(".document, td, th")?.querySelectorAll("[data-grade]") ?? [])];
  const gradeLink = grades.find((element) => element.dataset.grade === event.key);
  if (gradeLink) gradeLink.click();
  else if (event.key === "s") document.getElementById("save")?.click();
});
