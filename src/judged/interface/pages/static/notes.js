/* Notes to self on topics: kept in this browser, for what is open under one name; copied, or saved as JSON. */
import { make } from "./elements.js";

const KEPT = "judged-notes:";
const place = document.getElementById("note-to-self") ?? document.querySelector("[data-notes]");
const key = KEPT + place?.dataset.notes;
const read = () => JSON.parse(localStorage.getItem(key) ?? "{}");

const text = place?.querySelector("textarea");
if (text) {
  const { topic } = text.dataset;
  const said = place.querySelector("[role=status]");
  text.value = read()[topic] ?? "";
  place.hidden = false;
  place.open = Boolean(text.value);
  text.addEventListener("input", () => {
    const { [topic]: _, ...notes } = read();
    if (text.value.trim()) notes[topic] = text.value;
    try {
      localStorage.setItem(key, JSON.stringify(notes));
      said.textContent = "kept";
    } catch {
      said.textContent = "It cannot be kept: this browser has no room for it.";
    }
  });
  const save = place.querySelector("a");
  place.querySelector("button").addEventListener("click", async () => {
    const lines = Object.entries(read()).map(([name, note]) => `${name}: ${note}`);
    await navigator.clipboard.writeText(lines.join("\n"));
    said.textContent = "copied";
  });
  save.addEventListener("click", () => {
    save.href = `data:application/json,${encodeURIComponent(JSON.stringify(read(), null, 2))}`;
  });
} else if (place) {
  const notes = read();
  for (const link of place.querySelectorAll("a[href*='/topic?']")) {
    const note = notes[new URL(link.href).searchParams.get("topic")];
    if (note) link.after(make("span", { class: "rest" }, ` ✎ ${note}`));
  }
}
