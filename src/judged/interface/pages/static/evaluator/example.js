/* Editable lists on learning pages: each element with `data-example` gets a list and one measure with its calculation.

   data-measure: the measure; data-list and data-missing: as in URLs. The HTML of the server stays until the first response,
   and also if the request fails. */
import { showError, updateAttribute, parse, setText } from "./dom.js";
import { ListView } from "./list.js";
import { Session } from "./session.js";
import { readState } from "./state.js";

class Example {
  constructor(container) {
    this.container = container;
    const { measure, list, missing = "" } = container.dataset;
    this.initialState = readState(new URLSearchParams({ list, missing }));
    this.session = new Session(this.initialState, {
      path: (query) => `/api/v1/evaluator/example?${query}&measure=${encodeURIComponent(measure)}`,
      state: ({ state, top }) => {
        this.view?.show(state.list, top);
        if (this.view) updateAttribute(this.body, "data-top", top);
      },
      answer: (html) => this.#showAnswer(parse(html)),
      problem: (error) => this.body && showError(this.#find("problem"), error),
      say: (text) => setText(this.#find("announcement"), text),
    });
    this.session.refresh();
  }

  #find(name) {
    return this.body.querySelector(`.${name}`);
  }

  #showAnswer(body) {
    const isFirst = !this.body;
    const [current, text] = [this.body ?? body, body].map((element) => element.querySelector(".score > .value").textContent);
    if (isFirst) this.#replaceContent(body);
    setText(this.#find("previous-score"), current === text ? "" : `previously ${current}`);
    setText(this.#find("score > .value"), text);
    if (!isFirst) for (const name of ["calculation-box", "evaluator-link"]) this.#find(name).replaceWith(body.querySelector(`.${name}`));
    this.container.dispatchEvent(new CustomEvent("evaluated", { bubbles: true }));
  }

  /** Replace the static example by the editable one. */
  #replaceContent(body) {
    this.body = body;
    this.view = new ListView(body, "list", this.session);
    this.#find("reset").addEventListener("click", () => this.session.apply(this.initialState, { message: "Reset." }));
    this.container.replaceChildren(body);
    this.session.callbacks.state(this.session);
  }
}

for (const container of document.querySelectorAll("[data-example]")) new Example(container);
