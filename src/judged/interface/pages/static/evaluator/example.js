/* Lists to edit on the pages that teach: on every element with `data-example` a list, one measure of it and its working.

   data-measure: the measure; data-list and data-missing: as addresses have them. What the server wrote stays until the
   first answer is there, and for good where the API knows no answer. */
import { complain, mark, parse, write } from "./dom.js";
import { ListView } from "./list.js";
import { Session } from "./session.js";
import { readState } from "./state.js";

class Example {
  constructor(place) {
    this.place = place;
    const { measure, list, missing = "" } = place.dataset;
    this.first = readState(new URLSearchParams({ list, missing }));
    this.session = new Session(this.first, {
      path: (query) => `/api/v1/evaluator/example?${query}&measure=${encodeURIComponent(measure)}`,
      state: ({ state, top }) => {
        this.view?.show(state.list, top);
        if (this.view) mark(this.body, "data-top", top);
      },
      answer: (html) => this.#answer(parse(html)),
      problem: (error) => this.body && complain(this.#part("problem"), error),
      say: (text) => write(this.#part("said"), text),
    });
    this.session.refresh();
  }

  #part(name) {
    return this.body.querySelector(`.${name}`);
  }

  #answer(body) {
    const isFirst = !this.body;
    const [old, text] = [this.body ?? body, body].map((one) => one.querySelector(".score > .value").textContent);
    if (isFirst) this.#take(body);
    write(this.#part("was"), old === text ? "" : `was ${old}`);
    write(this.#part("score > .value"), text);
    if (!isFirst) for (const name of ["how", "whole"]) this.#part(name).replaceWith(body.querySelector(`.${name}`));
    this.place.dispatchEvent(new CustomEvent("evaluated", { bubbles: true }));
  }

  /** Put what the server made in the place of what cannot be edited. */
  #take(body) {
    this.body = body;
    this.view = new ListView(body, "list", this.session);
    this.#part("reset").addEventListener("click", () => this.session.apply(this.first, { said: "Reset." }));
    this.place.replaceChildren(body);
    this.session.told.state(this.session);
  }
}

for (const place of document.querySelectorAll("[data-example]")) new Example(place);
