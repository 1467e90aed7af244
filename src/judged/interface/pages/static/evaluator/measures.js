/* All measures: those that are pinned large on top, the others in their groups. The server writes them. */
import { ask } from "../elements.js";
import { mark, morph } from "./dom.js";
import { Latest } from "./session.js";

const familyOf = (key) => key.split(".")[0];

export class MeasuresView {
  /** @param place the element with the pinned measures and the groups
      @param told { pin(key), focus(key), moved() }: what was chosen, and that others are in view */
  constructor(place, told) {
    Object.assign(this, { place, told, searches: new Latest(), seen: new Set() });
    this.pinned = place.querySelector("#pinned");
    this.elements = new Map([...place.querySelectorAll(".measure")].map((one) => [one.dataset.key, one]));
    this.watch = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) this.seen[isIntersecting ? "add" : "delete"](target);
      told.moved();
    });
    for (const element of this.elements.values()) this.watch.observe(element);
    place.addEventListener("click", (event) => this.#click(event));
  }

  /** The families of the measures that are in view, and of the one in focus, separated by commas. */
  inView(focus) {
    return [...new Set([...this.seen].map((one) => one.dataset.key).concat(focus).map(familyOf))].join();
  }

  #click(event) {
    const button = event.target.closest(".measure > button");
    if (!button) return;
    event.preventDefault(); // without scripts the name sends the form
    const { key } = button.parentNode.dataset;
    if (button.matches(".name")) return this.told.focus(key);
    this.told.pin(key);
    button.focus();
  }

  /** Take on measures as the server wrote them: all that there are, or (`some`) those of some families. */
  show(measures, some) {
    const keys = new Set();
    for (const one of measures) {
      const { key, name } = one.dataset;
      keys.add(key);
      const element = this.elements.get(key) ?? this.#add(one);
      mark(element, "data-name", name);
      [...element.children].forEach((part, at) => morph(part, one.children[at]));
    }
    if (!some) for (const [key, element] of this.elements) element.hidden = !keys.has(key);
  }

  /** Make a place for a measure that settings made possible. */
  #add(given) {
    const element = given.cloneNode(true);
    this.elements.set(element.dataset.key, element);
    this.watch.observe(element);
    this.#home(element).append(element);
    return element;
  }

  #home({ dataset: { group } }) {
    return this.place.querySelector(`.group[data-key="${group}"] > .measures`);
  }

  /** Put the pinned measures on top, and others back into their groups; mark the one in focus, and give its name. */
  arrange(wanted, focus) {
    const pins = wanted.filter((key) => this.elements.has(key));
    if (pins.join() !== [...this.pinned.children].map((one) => one.dataset.key).join()) {
      for (const one of [...this.pinned.children]) if (!pins.includes(one.dataset.key)) this.#home(one).prepend(one);
      this.pinned.append(...pins.map((key) => this.elements.get(key)));
      for (const [key, one] of this.elements) mark(one.querySelector(".pin"), "aria-pressed", pins.includes(key));
    }
    for (const [key, one] of this.elements) mark(one, "data-focus", key === focus ? "yes" : null);
    return this.elements.get(focus)?.dataset.name;
  }

  /** Show what is found by any name that a measure has here or in another tool; `done(text, first)` tells what it was. */
  find(text, done) {
    this.searches.run(async () => {
      const typed = text.trim(), words = typed.toLowerCase().split(/\s+/).filter(Boolean);
      const { best, measures } = typed ? await ask(`/api/v1/measures?q=${encodeURIComponent(typed)}`) : { measures: [] };
      const all = [...this.elements.values()].filter((one) => !one.hidden);
      const families = new Set(measures.map(({ name }) => name));
      const found = new Set(all.filter((one) =>
        families.has(familyOf(one.dataset.key)) || words.every((word) => one.dataset.name.toLowerCase().includes(word))));
      for (const one of all) mark(one, "data-out", found.has(one) || one.parentNode === this.pinned ? null : "yes");
      for (const group of this.place.querySelectorAll(".group")) {
        const some = group.querySelector(".measure:not([data-out], [hidden])");
        mark(group, "data-out", some ? null : "yes");
        group.open = Boolean(typed && some);
      }
      if (!typed) return done("");
      const elsewhere = [...families].filter((name) => !all.some((one) => familyOf(one.dataset.key) === name));
      const first = [...found].find((one) => familyOf(one.dataset.key) === best) ?? [...found][0];
      const other = best && best.toLowerCase() !== typed.toLowerCase() ? `${typed} is ${best} here. ` : "";
      const more = elsewhere.length ? `; ${elsewhere.join(", ")} need${elsewhere.length > 1 ? "" : "s"} more than this list` : "";
      done(`${other}${found.size} found${more}.`, first?.dataset.key);
    });
  }
}
