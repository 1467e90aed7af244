/* All measures: those that are pinned large on top, the others in their groups. The server wrote them; cells are changed in place. */
import { mark, score, signed, write } from "./dom.js";
import { ask, Latest } from "./session.js";

/** Where a value stands between the ends of its range, in percent of the bar. */
const percent = (value, { low, high, perfect }) => {
  const [from, to] = [low ?? 0, high ?? perfect];
  if (typeof value !== "number" || typeof to !== "number" || to <= from) return null;
  return 100 * Math.min(1, Math.max(0, (value - from) / (to - from)));
};

const inPercent = (at) => `${at.toFixed(2)}%`;

/** Which way a change is good, as a class; nothing where there is none that can be seen. */
const tone = (change, higherIsBetter) => {
  if (typeof change !== "number" || Number(signed(change).replace("−", "-")) === 0) return null;
  if (typeof higherIsBetter !== "boolean") return "plain";
  return change > 0 === higherIsBetter ? "good" : "bad";
};

class MeasureView {
  constructor(element) {
    this.element = element;
    for (const name of ["name", "now", "second", "difference", "moved", "pin"])
      this[name] = element.querySelector(`:scope > .${name}`);
    this.marks = Object.fromEntries(
      ["value", "change", "other"].map((name) => [name, element.querySelector(`.gauge > .${name}`)]));
  }

  show(given) {
    const digits = given.group === "count" ? 0 : 4;
    Object.assign(this, { family: given.family, group: given.group });
    write(this.name, given.name);
    mark(this.element, "data-name", given.name);
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
  /** @param place the element with the pinned measures and the groups
      @param told { pin(keys), focus(key) }: what was chosen */
  constructor(place, told) {
    Object.assign(this, { place, told, views: new Map(), searches: new Latest(), seen: new Set() });
    this.pinned = place.querySelector("#pinned");
    this.pins = [...this.pinned.children].map((one) => one.dataset.key);
    this.groups = [...place.querySelectorAll(".group")];
    this.watch = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) this.seen[isIntersecting ? "add" : "delete"](target);
    });
    for (const element of place.querySelectorAll(".measure")) this.#adopt(element);
    place.addEventListener("click", (event) => this.#click(event));
  }

  #adopt(element) {
    const view = new MeasureView(element);
    this.views.set(element.dataset.key, view);
    this.watch.observe(element);
    return view;
  }

  #click(event) {
    const button = event.target.closest(".measure > button");
    if (!button) return;
    event.preventDefault(); // without scripts the name sends the form
    const { key } = button.parentNode.dataset;
    if (button.matches(".name")) return this.told.focus(key);
    this.told.pin(this.pins.includes(key) ? this.pins.filter((one) => one !== key) : [...this.pins, key]);
    button.focus();
  }

  /** The families of the measures that are in view, separated by commas. */
  get inView() {
    return [...new Set([...this.seen].map((element) => element.dataset.key.split(".")[0]))].join(",");
  }

  /** Show an answer, whole or (`only`) of some families. */
  show({ measures }, only = "") {
    const keys = new Set();
    for (const one of measures) {
      if (!this.views.has(one.key)) this.#add(one);
      this.views.get(one.key).show(one);
      keys.add(one.key);
    }
    if (!only) for (const [key, view] of this.views) mark(view.element, "hidden", keys.has(key) ? null : "");
  }

  /** Make a place for a measure that settings made possible. */
  #add({ key, group }) {
    const element = this.views.values().next().value.element.cloneNode(true);
    element.dataset.key = key;
    delete element.dataset.focus;
    this.#adopt(element);
    this.#home(group).append(element);
  }

  #home(group) {
    return this.place.querySelector(`.group[data-key="${group}"] > .measures`);
  }

  /** Put the pinned measures on top, and others back into their groups; mark the one in focus, and give its name. */
  arrange(pins, focus) {
    if (pins.join() !== this.pins.join()) {
      const back = this.pins.filter((key) => !pins.includes(key) && this.views.has(key));
      this.pins = pins;
      for (const key of back) this.#home(this.views.get(key).group).prepend(this.views.get(key).element);
      for (const key of pins) if (this.views.has(key)) this.pinned.append(this.views.get(key).element);
      for (const [key, view] of this.views) mark(view.pin, "aria-pressed", pins.includes(key));
    }
    for (const [key, view] of this.views) mark(view.element, "data-focus", key === focus ? "yes" : null);
    return this.views.get(focus)?.name.textContent;
  }

  /** Show what is found by any name that a measure has here or in another tool; `done(text, first)` tells what it was. */
  find(text, done) {
    this.searches.run(async () => {
      const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
      const { best, measures } = words.length
        ? await ask(`/api/v1/measures?q=${encodeURIComponent(text.trim())}`) : { measures: [] };
      const families = new Set(measures.map(({ name }) => name));
      const found = [];
      for (const [key, { element, family, name }] of this.views) {
        const named = name.textContent.toLowerCase();
        const isIn = words.length === 0 || families.has(family) || words.every((word) => named.includes(word));
        mark(element, "data-out", isIn || this.pins.includes(key) ? null : "yes");
        if (isIn && !element.hidden) found.push(key);
      }
      for (const group of this.groups) {
        const some = group.querySelector(".measure:not([data-out], [hidden])");
        mark(group, "data-out", some ? null : "yes");
        group.open = Boolean(words.length && some);
      }
      if (!words.length) return done("");
      const elsewhere = [...families].filter((name) => ![...this.views.values()].some(({ family }) => family === name));
      const first = found.find((key) => this.views.get(key).family === best) ?? found[0];
      done(`${best && best.toLowerCase() !== text.trim().toLowerCase() ? `${text.trim()} is ${best} here. ` : ""}${found.length} found${
        elsewhere.length ? `; ${elsewhere.join(", ")} need${elsewhere.length > 1 ? "" : "s"} more than this list` : ""}.`, first);
    });
  }
}
