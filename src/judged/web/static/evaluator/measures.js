/* All measures in their groups. What the server wrote is taken over, and cells are changed in place. */
import { details } from "./detail.js";
import { draw, make, mark, score, signed, write } from "./dom.js";
import { ask, Latest } from "./session.js";

/** Where a value stands between the ends of its range, in percent of the bar. */
const percent = (value, { low, high, perfect }) => {
  const [from, to] = [low ?? 0, high ?? perfect];
  if (typeof value !== "number" || typeof to !== "number" || to <= from) return null;
  return 100 * Math.min(1, Math.max(0, (value - from) / (to - from)));
};

const inPercent = (at) => `${at.toFixed(2)}%`;

/** The bar of a value: the value, what it won or lost by the last change, and the other list's. */
const gauge = () =>
  draw("svg", { class: "gauge", "aria-hidden": "true", width: "100%", height: 14 },
    draw("rect", { class: "ground", y: 3, height: 8, width: "100%" }),
    draw("rect", { class: "value", y: 3, height: 8, width: 0 }),
    draw("rect", { class: "change", y: 3, height: 8, width: 0 }),
    draw("line", { class: "other", y1: 0, y2: 14 }));

const build = () =>
  make("details", { class: "measure" },
    make("summary", {},
      make("span", { class: "name" }), make("span", { class: "drawn" }, gauge()), make("span", { class: "now" }),
      make("span", { class: "second" }), make("span", { class: "difference" }), make("span", { class: "moved" })),
    make("div", { class: "how" }));

/** Which way a change is good, as a class; nothing where there is none that can be seen. */
const tone = (change, higherIsBetter) => {
  if (typeof change !== "number" || Number(signed(change).replace("−", "-")) === 0) return null;
  if (typeof higherIsBetter !== "boolean") return "plain";
  return change > 0 === higherIsBetter ? "good" : "bad";
};

class MeasureView {
  constructor(element = build()) {
    this.element = element;
    for (const name of ["name", "now", "second", "difference", "moved"])
      this[name] = element.querySelector(`:scope > summary > .${name}`);
    this.how = element.querySelector(":scope > .how");
    this.marks = Object.fromEntries(
      ["value", "change", "other"].map((name) => [name, element.querySelector(`.gauge > .${name}`)]));
    this.shown = null;
  }

  show(given, digits) {
    write(this.name, given.name);
    this.element.dataset.name = given.name;
    write(this.now, score(given.value, digits));
    write(this.second, score(given.other, digits));
    write(this.difference, signed(given.difference, digits));
    mark(this.difference, "data-tone", tone(given.difference, given.higher_is_better));
    const isMoved = tone(given.moved, given.higher_is_better);
    write(this.moved, isMoved ? signed(given.moved, digits) : "");
    mark(this.moved, "data-tone", isMoved);
    this.#draw(given, isMoved);
  }

  #draw(given, isMoved) {
    const [now, before, other] = [given.value, given.before, given.other].map((value) => percent(value, given));
    const { value, change, other: line } = this.marks;
    mark(value.parentNode, "data-empty", now === null ? "yes" : null);
    mark(value, "width", inPercent(now ?? 0));
    const some = isMoved && now !== null && before !== null;
    mark(change, "x", inPercent(some ? Math.min(now, before) : 0));
    mark(change, "width", inPercent(some ? Math.abs(now - before) : 0));
    mark(change, "data-tone", isMoved);
    mark(line, "visibility", other === null ? "hidden" : null);
    for (const end of ["x1", "x2"]) mark(line, end, inPercent(other ?? 0));
  }
}

export class MeasuresView {
  /** @param place the element with the groups
      @param told { path(name): where its working is asked for, changed(): what is open has changed } */
  constructor(place, told) {
    Object.assign(this, { place, told, views: new Map(), filter: "", requests: new Latest(), seen: new Set(), partial: "" });
    this.watch = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) this.seen[isIntersecting ? "add" : "delete"](target);
    });
    for (const group of place.querySelectorAll(".group"))
      for (const one of group.querySelectorAll(".measure")) this.#adopt(one.dataset.key, new MeasureView(one));
  }

  #adopt(key, view) {
    this.views.set(key, view);
    view.element.dataset.key = key;
    this.watch.observe(view.element);
    view.element.addEventListener("toggle", () => {
      this.told.changed();
      if (view.element.open && view.shown === null) this.#work([view]);
    });
    return view;
  }

  /** The families of the measures that are in view, separated by commas. */
  get inView() {
    return [...new Set([...this.seen].map((element) => element.dataset.key.split(".")[1]))].join(",");
  }

  /** Show an answer, whole or (`only`) of some families; rows are told apart by their family and place in it, for
      names change with the settings. */
  show({ measures }, only = "") {
    const seen = new Set();
    const counts = new Map();
    for (const one of measures) {
      const named = `${one.group}.${one.family}`;
      const key = `${named}.${counts.get(named) ?? 0}`;
      counts.set(named, (counts.get(named) ?? 0) + 1);
      const body = this.place.querySelector(`.group[data-key="${one.group}"] .measures`);
      if (!this.views.has(key)) body.append(this.#adopt(key, new MeasureView()).element);
      this.views.get(key).show(one, one.group === "count" ? 0 : 4);
      seen.add(key);
    }
    // The whole that follows a part brings nothing new to what is open, unless that was not in the part.
    const part = only ? null : this.partial && this.partial.split(",");
    this.partial = only;
    const isNew = ({ element }) => !part || !part.includes(element.dataset.key.split(".")[1]);
    if (this.#open().some(isNew)) this.#work(this.#open());
    if (only) return;
    for (const [key, view] of this.views) mark(view.element, "hidden", seen.has(key) ? null : "");
    if (this.filter) this.select(this.filter);
  }

  #open() {
    return [...this.views.values()].filter(({ element }) => element.open && !element.hidden);
  }

  /** The keys of the measures that are open. */
  get opened() {
    return this.#open().map(({ element }) => element.dataset.key);
  }

  /** Open measures by their keys. */
  open(keys) {
    for (const key of keys) if (this.views.has(key)) this.views.get(key).element.open = true;
  }

  /** Ask for the working of measures: of those that are given and of all that are open. */
  #work(views) {
    const every = new Set([...views, ...this.#open()]);
    if (every.size === 0) return;
    this.requests.run((signal) => Promise.all([...every].map((view) => this.#explain(view, signal))));
  }

  async #explain(view, signal) {
    try {
      const answer = await ask(this.told.path(view.element.dataset.name), { signal });
      view.how.replaceChildren(...details(answer));
      view.shown = answer.name;
    } catch (error) {
      if (error.name !== "AbortError") view.how.replaceChildren(make("p", { class: "problem", text: error.message }));
    }
  }

  /** Show only the measures whose name holds every word; groups without any vanish. Gives their number. */
  select(text) {
    this.filter = text.trim().toLowerCase();
    const words = this.filter.split(/\s+/).filter(Boolean);
    let count = 0;
    for (const group of this.place.querySelectorAll(".group")) {
      let some = 0;
      for (const { element } of [...this.views.values()].filter((one) => group.contains(one.element))) {
        const named = `${element.dataset.name} ${group.dataset.title}`.toLowerCase();
        const isIn = words.every((word) => named.includes(word));
        mark(element, "data-out", isIn ? null : "yes");
        some += isIn ? 1 : 0;
      }
      mark(group, "data-out", some ? null : "yes");
      count += some;
    }
    return count;
  }
}
