/* The search palette (/ or Ctrl-K), keyboard help (?), and the button that copies the URL of the page. */
import { requestJson, createElement } from "./elements.js";

const dialog = (id, label, ...parts) => {
  const element = createElement("dialog", { id, "aria-label": label, closedby: "any" }, ...parts);
  document.body.append(element);
  return element;
};

const input = createElement("input", {
  type: "search", name: "q", role: "combobox", maxlength: 200, spellcheck: "false", autocomplete: "off", "aria-expanded": "true",
  "aria-controls": "search-results", "aria-autocomplete": "list", "aria-label": "Find a topic, run, measure, or page",
  placeholder: "Topic, run, measure, page",
});
const list = createElement("ul", { id: "search-results", role: "listbox", "aria-label": "Matches" });
const status = createElement("p", { class: "note", role: "status" });
const form = createElement("form", { action: "/search" }, input);
const palette = dialog("palette", "Find", form, list, status);

let selectedIndex = 0;
const options = () => [...list.children];
const selectRow = (index) => {
  const rows = options();
  selectedIndex = rows.length ? (index + rows.length) % rows.length : 0;
  for (const [i, option] of rows.entries()) option.setAttribute("aria-selected", String(i === selectedIndex));
  if (rows.length) input.setAttribute("aria-activedescendant", rows[selectedIndex].id);
  else input.removeAttribute("aria-activedescendant");
  rows[selectedIndex]?.scrollIntoView({ block: "nearest" });
};
let requestCount = 0;
const search = async () => {
  const requestNumber = ++requestCount;
  const response = await requestJson(`/api/v1/search?${new URLSearchParams({ q: input.value })}`).catch(() => null);
  if (requestNumber !== requestCount) return; // a newer request exists
  const matches = response?.matches ?? [];
  list.replaceChildren(
    ...matches.map((match, i) => {
      const row = createElement("li", { role: "option", id: `result-${i}` }, createElement("b", {}, match.name), ` ${match.text} `, createElement("span", { class: "secondary" }, match.kind));
      row.addEventListener("click", () => location.assign(match.address));
      row.dataset.address = match.address;
      return row;
    }),
  );
  status.textContent = matches.length ? "" : response ? "No matches." : "The workbench does not respond.";
  selectRow(0);
};
input.addEventListener("input", search);
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") palette.close(); // otherwise Escape would only clear the field
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  selectRow(selectedIndex + step);
});
form.addEventListener("submit", (event) => {
  const match = options()[selectedIndex];
  if (!match) return;
  event.preventDefault();
  location.assign(match.dataset.address);
});
const open = () => {
  palette.showModal();
  input.select();
  search();
};
document.getElementById("find").addEventListener("click", (event) => {
  event.preventDefault();
  open();
});

/* Keys in the help of the page, and all controls with a keyboard shortcut. */
const row = (keys, text) => createElement("div", {}, createElement("dt", {}, ...keys.split(" ").flatMap((key) => [createElement("kbd", {}, key), " "])), createElement("dd", {}, text));
const help = () => {
  const pageKeys = [...document.querySelectorAll("main .keys dl > *")].map((entry) => entry.cloneNode(true));
  const controls = [...document.querySelectorAll("main [aria-keyshortcuts]:not([hidden])")].map((control) => {
    const name = control.labels?.[0] ?? control.querySelector(".word") ?? control;
    return row(control.getAttribute("aria-keyshortcuts"), name.textContent.replace(control.querySelector?.("kbd")?.textContent ?? "", "").trim());
  });
  const shared = [["/ Ctrl+K", "find a topic, run, measure, or page"], ["?", "show keyboard shortcuts"], ["Esc", "close"]].map((pair) => row(...pair));
  const close = createElement("button", { type: "button" }, "Close");
  const helpDialog = dialog("keyboard-help", "Keyboard shortcuts", createElement("h2", {}, "Keyboard shortcuts"), createElement("dl", {}, ...shared, ...pageKeys, ...controls), close);
  close.addEventListener("click", () => helpDialog.close());
  helpDialog.addEventListener("close", () => helpDialog.remove());
  helpDialog.showModal();
};

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const control = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
  const isTyping = event.target.matches?.("input, select, textarea, [contenteditable]");
  const isPlainKey = !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (control || (isPlainKey && event.key === "/")) open();
  else if (isPlainKey && event.key === "?") help();
  else return;
  event.preventDefault();
});

const share = document.getElementById("share");
share.hidden = !navigator.clipboard;
share.addEventListener("click", async () => {
  await navigator.clipboard.writeText(location.href);
  share.textContent = "Copied";
  setTimeout(() => (share.textContent = "Copy link"), 2000);
});
