/* Notes on topics, stored in this browser by the title of the open data. They can be copied or saved as JSON. */
import { createElement } from "./elements.js";

const STORAGE_PREFIX = "judged-notes:";
const container = document.getElementById("private-note") ?? document.querySelector("[data-notes]");
const key = STORAGE_PREFIX + container?.dataset.notes;
const read = () => JSON.parse(localStorage.getItem(key) ?? "{}");

const text = container?.querySelector("textarea");
if (text) {
  const { topic } = text.dataset;
  const status = container.querySelector("[role=status]");
  text.value = read()[topic] ?? "";
  container.hidden = false;
  container.open = Boolean(text.value);
  text.addEventListener("input", () => {
    const { [topic]: _, ...notes } = read();
    if (text.value.trim()) notes[topic] = text.value;
    try {
      localStorage.setItem(key, JSON.stringify(notes));
      status.textContent = "saved";
    } catch {
      status.textContent = "The note cannot be saved, because the storage of this browser is full.";
    }
  });
  const save = container.querySelector("a");
  container.querySelector("button").addEventListener("click", async () => {
    const lines = Object.entries(read()).map(([name, note]) => `${name}: ${note}`);
    await navigator.clipboard.writeText(lines.join("\n"));
    status.textContent = "copied";
  });
  save.addEventListener("click", () => {
    save.href = `data:application/json,${encodeURIComponent(JSON.stringify(read(), null, 2))}`;
  });
} else if (container) {
  const notes = read();
  for (const link of container.querySelectorAll("a[href*='/topic?']")) {
    const note = notes[new URL(link.href).searchParams.get("topic")];
    if (note) link.after(createElement("span", { class: "secondary" }, ` ✎ ${note}`));
  }
}
