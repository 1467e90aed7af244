/* Lists to edit on the pages that teach: on every element with `data-example` a list, one measure of it and its working.

   data-measure: the measure; data-list and data-missing: as addresses have them; any other setting of the evaluator
   (data-cutoff, data-gain, data-discount, data-base, data-rel, data-relevant, data-max) where it is not in the measure's name.
   What the server wrote stays until the first answer is there, and for good where the API knows no answer. */
import { make, mark, write } from "./dom.js";
import { ListView } from "./list.js";
import { Session } from "./session.js";
import { readState, SETTINGS, writeState } from "./state.js";

const WORKING = "/evaluator/working";
const IN_NAMES = ["gain", "discount", "base", "rel", "max"];

let count = 0;

/** Read the settings that a measure's name holds: `nDCG(gain=exp2)@5` has a gain and a cutoff. */
const named = (measure) => {
  const found = { cutoff: /@(\d+)$/.exec(measure)?.[1] };
  for (const name of IN_NAMES)
    found[name] = new RegExp(`[(,]${name}=(\\{[^}]*\\}|[^,)]*)`).exec(measure)?.[1];
  return found;
};

const firstState = (place) => {
  const known = named(place.dataset.measure);
  const given = new URLSearchParams({ list: place.dataset.list });
  for (const name of SETTINGS) {
    const value = place.dataset[name] ?? known[name];
    if (value) given.set(name, value);
  }
  return readState(given);
};

const tool = (text, label, act) => {
  const button = make("button", { type: "button", text, "aria-label": label, title: label });
  button.addEventListener("click", act);
  return button;
};

export class Example {
  constructor(place) {
    this.place = place;
    this.first = firstState(place);
    this.list = make("ol", { class: "rows", id: `example-${++count}`, "aria-label": `A list for ${place.dataset.measure}` });
    this.value = make("b", { class: "value" });
    this.was = make("span", { class: "note" });
    this.said = make("p", { class: "note", role: "status" });
    this.problem = make("p", { class: "problem", role: "alert", hidden: true });
    this.how = make("div");
    this.link = make("a", { text: "Open in the evaluator" });
    this.session = new Session(this.first, {
      path: (query) => `${WORKING}?${query}&measure=${encodeURIComponent(place.dataset.measure)}`,
      state: (session) => this.#show(session),
      answer: (answer) => this.#answer(answer),
      problem: (error) => this.#problem(error),
      say: (text) => write(this.said, text),
    });
    this.view = new ListView(this.list, "list", this.session);
    this.#show(this.session);
    this.session.refresh();
  }

  #build() {
    const { view, session } = this;
    const tools = make("div", { class: "tools", role: "group", "aria-label": "The marked row" },
      tool("↑", "Move up", () => view.move(view.at, view.at - 1)),
      tool("↓", "Move down", () => view.move(view.at, view.at + 1)),
      tool("+", "Add below", () => view.add(view.order.length ? view.at + 1 : 0)),
      tool("×", "Remove", () => view.order.length && view.remove(view.at)),
      tool("Reset", "Reset the list", () => session.apply(this.first, { said: "Reset." })));
    this.body = make("div", { class: "typed" },
      make("div", { class: "typed-list" }, tools, this.list, this.said),
      make("div", { class: "typed-how" },
        make("p", { class: "score" }, make("span", { text: this.place.dataset.measure }), " ", this.value, " ", this.was),
        this.problem, this.how, make("p", { class: "note" }, this.link)));
    this.#show(session);
    this.place.replaceChildren(this.body);
  }

  #show({ state, top }) {
    this.view.show(state.list, top);
    if (this.body) mark(this.body, "data-top", top);
  }

  #answer(html) {
    if (!this.body) this.#build();
    this.how.innerHTML = html; // a page of judged's own, in which every text is escaped
    const text = this.how.querySelector(".value").textContent;
    const old = this.value.textContent;
    write(this.was, old && old !== text ? `was ${old}` : "");
    write(this.value, text);
    this.link.href = `/evaluator?${writeState(this.session.state)}`;
    this.place.dispatchEvent(new CustomEvent("evaluated", { bubbles: true }));
  }

  #problem(error) {
    const text = error ? [error.message, error.fix].filter(Boolean).join(". Fix: ") : "";
    write(this.problem, text);
    this.problem.hidden = !text;
  }
}

for (const place of document.querySelectorAll("[data-example]")) new Example(place);
