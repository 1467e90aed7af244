/* An editable list: rows with grades and names, for keyboard, mouse, and touch. */
import { draggable } from "./drag.js";
import { Row } from "./row.js";

const prefersReducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

export class ListView {
  /** @param container HTML of the server: buttons, rows, which are reused, and the template of a row
      @param side which list of the session this is: "list" or "other" */
  constructor(container, side, session) {
    Object.assign(this, { side, session, index: 0, rows: new Map(), order: [] });
    this.container = container.querySelector(".rows");
    this.template = container.querySelector("template").content.firstElementChild;
    this.spareRows = [...this.container.children].map((element) => new Row(element));
    this.container.addEventListener("keydown", (event) => this.#key(event));
    this.container.addEventListener("click", (event) => this.#click(event));
    this.container.addEventListener("focusin", ({ target }) => this.#withRow(target, (index) => this.#setCurrent(index)));
    this.container.addEventListener("change", ({ target }) => target.matches(".doc") && this.#withRow(target, (index) => this.#rename(index)));
    draggable(this.container, () => this.order.map((row) => row.element), {
      hold: (index) => this.#hold(index),
      carry: (index) => ((this.index = index), session.carry(index)),
      drop: (isCanceled) => this.#drop(isCanceled),
    });
    const tools = {
      up: () => this.move(this.index, this.index - 1),
      down: () => this.move(this.index, this.index + 1),
      add: () => this.add(this.order.length ? this.index + 1 : 0),
      remove: () => this.order.length && this.remove(this.index),
    };
    for (const [name, action] of Object.entries(tools)) container.querySelector(`.tools .${name}`).addEventListener("click", action);
  }

  /** The displayed names of the documents. */
  get names() {
    return this.order.map((row) => row.displayName);
  }

  get items() {
    return this.session.state[this.side];
  }

  /** Show the items. Rows keep their elements, so that focus and drag are not lost. */
  show(items, top) {
    this.index = Math.max(0, Math.min(this.index, items.length - 1));
    const before = this.rows;
    const next = (key) => before.get(key) ?? this.spareRows.shift() ?? new Row(this.template.cloneNode(true));
    this.rows = new Map(items.map(({ key }) => [key, next(key)]));
    const order = [...this.rows.values()];
    if (order.length !== this.order.length || order.some((row, index) => row !== this.order[index])) this.#arrange(order);
    items.forEach((item, index) => order[index].show(item, index + 1, top, index === this.index));
  }

  /** Show the facts of each row from the server. */
  showFacts(facts) {
    [...facts].forEach((fact, index) => this.order[index]?.showFacts(fact));
  }

  /** Focus a row. */
  focus(index) {
    if (this.order.length === 0) return;
    this.#setCurrent(Math.max(0, Math.min(index, this.order.length - 1)));
    this.order[this.index].focus?.focus();
    const { element } = this.order[this.index];
    requestAnimationFrame(() => element.scrollIntoView({ block: "nearest" })); // later, to avoid another layout
  }

  /** Reorder the elements around the focused or dragged row, which must stay in the document. During a drag, the other rows
      are animated. Moves by key are not animated, so that the numbers are not delayed. */
  #arrange(order) {
    const isAnimated = this.held && !prefersReducedMotion.matches;
    const oldTops = new Map(isAnimated ? this.order.map((row) => [row, row.element.offsetTop]) : []);
    const fixedRow = this.held ?? this.order.find((row) => row.element.contains(document.activeElement));
    const elements = order.map((row) => row.element);
    for (const child of [...this.container.children]) if (!elements.includes(child)) child.remove();
    elements.reduceRight((next, element) => {
      const isPlaced = element.isConnected && (element === fixedRow?.element || element.nextElementSibling === next);
      if (!isPlaced) this.container.insertBefore(element, next);
      return element;
    }, null);
    this.order = order;
    this.spareRows = [];
    for (const row of order) {
      const offset = oldTops.has(row) ? oldTops.get(row) - row.element.offsetTop : 0;
      if (offset && row !== this.held)
        row.element.animate([{ transform: `translateY(${offset}px)` }, { transform: "none" }], { duration: 140, easing: "ease-out" });
    }
  }

  /** Mark a row as current. */
  #setCurrent(index) {
    if (index === this.index) return;
    const previous = this.index;
    this.index = index;
    for (const i of [previous, index])
      if (this.items[i]) this.order[i].show(this.items[i], i + 1, this.session.top, i === index);
  }

  /** Call an action with the index of the row of an element. */
  #withRow(element, action) {
    const row = element.closest(".row");
    const index = this.order.findIndex(({ element: other }) => other === row);
    if (index >= 0) action(index);
  }

  #rename(index) {
    const field = this.order[index].doc;
    const name = field.value.trim();
    if (name) this.session.rename(this.side, index, name);
    else field.value = this.items[index].doc;
  }

  #grade(index, text) {
    this.session.grade(this.side, index, text === "-" ? null : Number(text));
  }

  #click({ target }) {
    const button = target.closest("button");
    if (!button) return;
    this.#withRow(button, (index) => {
      this.#setCurrent(index);
      if (button.dataset.grade) {
        this.#grade(index, button.dataset.grade);
        this.order[index].focus?.focus();
      } else if (button.matches(".remove")) this.remove(index);
      else if (button.matches(".more")) this.edit(index);
    });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey) return;
    this.#withRow(event.target, (index) => {
      const action = this.#moves(event, index) ?? (event.target.matches("input") ? null : this.#grades(event, index));
      if (!action) return;
      event.preventDefault();
      action();
    });
  }

  /** Keys that work in the whole row: arrows, with Alt to move the row, and Enter in the name. */
  #moves({ key, altKey, target }, index) {
    if (key === "Enter" && target.matches(".doc")) return () => (this.#rename(index), this.focus(this.index));
    const ends = altKey ? { Home: 0, End: this.order.length - 1 } : {};
    const targetIndex = { ArrowUp: index - 1, ArrowDown: index + 1, ...ends }[key];
    if (targetIndex === undefined) return null;
    if (altKey || target.matches(".handle")) return () => this.move(index, targetIndex);
    return () => {
      this.focus(targetIndex);
      if (target.matches("input")) this.order[this.index].doc.select();
    };
  }

  #grades({ key, altKey, target }, index) {
    if (altKey) return null;
    const grade = (text) => () => this.#grade(index, text);
    if (/^[0-9]$/.test(key)) return grade(key);
    if (key === "-" || key === "u") return grade("-");
    if (key === "Delete" || key === "Backspace") return () => this.remove(index);
    if (key === "Insert" || key === "+") return () => this.add(index + 1);
    if (key === "." || key === ",") return () => this.edit(index, ".");
    if (!target.matches("[role=radio]")) return null;
    if (key === "Enter") return () => this.edit(index);
    const next = { ArrowLeft: target.previousElementSibling, ArrowRight: target.nextElementSibling }[key];
    return next ? grade(next.dataset.grade) : null;
  }

  move(from, targetIndex) {
    this.index = Math.max(0, Math.min(targetIndex, this.order.length - 1));
    this.session.move(this.side, from, targetIndex);
    this.order[this.index]?.element.scrollIntoView({ block: "nearest" });
  }

  remove(index) {
    this.session.remove(this.side, index);
    this.focus(index);
  }

  add(index) {
    this.session.add(this.side, index);
    this.focus(index);
  }

  /** Open the field for any number; `more` is the typed text. */
  edit(index, more = "") {
    this.order[index].edit(more && `${this.items[index].grade ?? 0}${more}`, (value) => this.session.grade(this.side, index, value));
  }

  #hold(index) {
    this.#setCurrent(index);
    this.held = this.order[index];
    this.session.hold(this.side, index);
  }

  #drop(isCanceled) {
    const { held } = this;
    this.held = null;
    this.session.drop(isCanceled);
    this.index = this.order.indexOf(held);
    this.session.callbacks.state(this.session);
    held?.focus?.focus({ preventScroll: true });
  }
}
