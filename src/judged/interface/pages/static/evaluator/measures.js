/* All measures: pinned ones are large and on top, the others are in their groups. The server renders them. */
import { requestJson } from "../elements.js";
import { updateAttribute, morph } from "./dom.js";
import { Latest } from "./session.js";

const familyOf = (key) => key.split(".")[0];

export class MeasuresView {
  /** @param container the element with the pinned measures and the groups
      @param callbacks { pin(key), focus(key), moved() }; `moved` reports that other measures are visible */
  constructor(container, callbacks) {
    Object.assign(this, { container, callbacks, searches: new Latest(), visible: new Set() });
    this.pinned = container.querySelector("#pinned");
    this.elements = new Map([...container.querySelectorAll(".measure")].map((element) => [element.dataset.key, element]));
    this.observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) this.visible[isIntersecting ? "add" : "delete"](target);
      callbacks.moved();
    });
    for (const element of this.elements.values()) this.observer.observe(element);
    container.addEventListener("click", (event) => this.#click(event));
  }

  /** Families of the visible measures and of the focused measure, separated by commas. */
  inView(focus) {
    return [...new Set([...this.visible].map((element) => element.dataset.key).concat(focus).map(familyOf))].join();
  }

  #click(event) {
    const button = event.target.closest(".measure > button");
    if (!button) return;
    event.preventDefault(); // without scripts, the name submits the form
    const { key } = button.parentNode.dataset;
    if (button.matches(".name")) return this.callbacks.focus(key);
    this.callbacks.pin(key);
    button.focus();
  }

  /** Show measures from the server: all, or (`isPartial`) those of some families. */
  show(measures, isPartial) {
    const keys = new Set();
    for (const source of measures) {
      const { key, name } = source.dataset;
      keys.add(key);
      const element = this.elements.get(key) ?? this.#add(source);
      updateAttribute(element, "data-name", name);
      [...element.children].forEach((part, i) => morph(part, source.children[i]));
    }
    if (!isPartial) for (const [key, element] of this.elements) element.hidden = !keys.has(key);
  }

  /** Add a measure that became available by the settings. */
  #add(source) {
    const element = source.cloneNode(true);
    this.elements.set(element.dataset.key, element);
    this.observer.observe(element);
    this.#groupOf(element).append(element);
    return element;
  }

  #groupOf({ dataset: { group } }) {
    return this.container.querySelector(`.group[data-key="${group}"] > .measures`);
  }

  /** Move pinned measures to the top and others to their groups; mark the focused measure, and return its name. */
  arrange(pinnedKeys, focus) {
    const pins = pinnedKeys.filter((key) => this.elements.has(key));
    if (pins.join() !== [...this.pinned.children].map((element) => element.dataset.key).join()) {
      for (const element of [...this.pinned.children]) if (!pins.includes(element.dataset.key)) this.#groupOf(element).prepend(element);
      this.pinned.append(...pins.map((key) => this.elements.get(key)));
      for (const [key, element] of this.elements) updateAttribute(element.querySelector(".pin"), "aria-pressed", pins.includes(key));
    }
    for (const [key, element] of this.elements) updateAttribute(element, "data-focus", key === focus ? "yes" : null);
    return this.elements.get(focus)?.dataset.name;
  }

  /** Show the measures that match a name, also one of another tool; `done(text, firstKey)` gets the result. */
  find(text, done) {
    this.searches.run(async () => {
      const query = text.trim(), words = query.toLowerCase().split(/\s+/).filter(Boolean);
      const { best, measures } = query ? await requestJson(`/api/v1/measures?q=${encodeURIComponent(query)}`) : { measures: [] };
      const shownElements = [...this.elements.values()].filter((element) => !element.hidden);
      const families = new Set(measures.map(({ name }) => name));
      const matches = new Set(shownElements.filter((element) =>
        families.has(familyOf(element.dataset.key)) || words.every((word) => element.dataset.name.toLowerCase().includes(word))));
      for (const element of shownElements) updateAttribute(element, "data-out", matches.has(element) || element.parentNode === this.pinned ? null : "yes");
      for (const group of this.container.querySelectorAll(".group")) {
        const match = group.querySelector(".measure:not([data-out], [hidden])");
        updateAttribute(group, "data-out", match ? null : "yes");
        group.open = Boolean(query && match);
      }
      if (!query) return done("");
      const otherFamilies = [...families].filter((name) => !shownElements.some((element) => familyOf(element.dataset.key) === name));
      const first = [...matches].find((element) => familyOf(element.dataset.key) === best) ?? [...matches][0];
      const alias = best && best.toLowerCase() !== query.toLowerCase() ? `${query} is called ${best} here. ` : "";
      const suffix = otherFamilies.length ? `; ${otherFamilies.join(", ")} require${otherFamilies.length > 1 ? "" : "s"} more data than this list` : "";
      done(`${alias}${matches.size} ${matches.size === 1 ? "match" : "matches"}${suffix}.`, first?.dataset.key);
    });
  }
}
