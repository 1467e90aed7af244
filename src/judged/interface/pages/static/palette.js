/* The palette (/ or Ctrl-K), the keys of the page (?), and the address of the page to copy. */
import { ask, make } from "./elements.js";

const dialog = (id, label, ...parts) => {
  const made = make("dialog", { id, "aria-label": label, closedby: "any" }, ...parts);
  document.body.append(made);
  return made;
};

const input = make("input", {
  type: "search", name: "q", role: "combobox", maxlength: 200, spellcheck: "false", autocomplete: "off", "aria-expanded": "true",
  "aria-controls": "places", "aria-autocomplete": "list", "aria-label": "Find a topic, run, measure or page",
  placeholder: "Topic, run, measure, page",
});
const list = make("ul", { id: "places", role: "listbox", "aria-label": "What was found" });
const said = make("p", { class: "note", role: "status" });
const form = make("form", { action: "/search" }, input);
const palette = dialog("palette", "Find", form, list, said);

let chosen = 0;
const options = () => [...list.children];
const choose = (at) => {
  const all = options();
  chosen = all.length ? (at + all.length) % all.length : 0;
  for (const [place, one] of all.entries()) one.setAttribute("aria-selected", String(place === chosen));
  if (all.length) input.setAttribute("aria-activedescendant", all[chosen].id);
  else input.removeAttribute("aria-activedescendant");
  all[chosen]?.scrollIntoView({ block: "nearest" });
};
let asked = 0;
const find = async () => {
  const mine = ++asked;
  const answer = await ask(`/api/v1/search?${new URLSearchParams({ q: input.value })}`).catch(() => null);
  if (mine !== asked) return; // another letter was typed since
  const found = answer?.found ?? [];
  list.replaceChildren(
    ...found.map((place, at) => {
      const row = make("li", { role: "option", id: `place-${at}` }, make("b", {}, place.name), ` ${place.text} `, make("span", { class: "rest" }, place.kind));
      row.addEventListener("click", () => location.assign(place.address));
      row.dataset.address = place.address;
      return row;
    }),
  );
  said.textContent = found.length ? "" : answer ? "Nothing is called so." : "The workbench does not answer.";
  choose(0);
};
input.addEventListener("input", find);
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") palette.close(); // a search field would only be emptied
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  choose(chosen + step);
});
form.addEventListener("submit", (event) => {
  const place = options()[chosen];
  if (!place) return;
  event.preventDefault();
  location.assign(place.dataset.address);
});
const open = () => {
  palette.showModal();
  input.select();
  find();
};
document.getElementById("find").addEventListener("click", (event) => {
  event.preventDefault();
  open();
});

/* What the page says of its own keys, and every control that has one. */
const row = (keys, text) => make("div", {}, make("dt", {}, ...keys.split(" ").flatMap((key) => [make("kbd", {}, key), " "])), make("dd", {}, text));
const help = () => {
  const own = [...document.querySelectorAll("main .keys dl > *")].map((one) => one.cloneNode(true));
  const controls = [...document.querySelectorAll("main [aria-keyshortcuts]:not([hidden])")].map((one) => {
    const name = one.labels?.[0] ?? one.querySelector(".word") ?? one;
    return row(one.getAttribute("aria-keyshortcuts"), name.textContent.replace(one.querySelector?.("kbd")?.textContent ?? "", "").trim());
  });
  const shared = [["/ Ctrl+K", "find a topic, run, measure or page"], ["?", "show these keys"], ["Esc", "close"]].map((pair) => row(...pair));
  const close = make("button", { type: "button" }, "Close");
  const made = dialog("keys-of-page", "Keys", make("h2", {}, "Keys"), make("dl", {}, ...shared, ...own, ...controls), close);
  close.addEventListener("click", () => made.close());
  made.addEventListener("close", () => made.remove());
  made.showModal();
};

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const control = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
  const typing = event.target.matches?.("input, select, textarea, [contenteditable]");
  const single = !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (control || (single && event.key === "/")) open();
  else if (single && event.key === "?") help();
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
