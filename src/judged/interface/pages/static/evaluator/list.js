/* A list as a control: rows with grades and names, by keyboard, mouse and touch. */
import { draggable } from "./drag.js";
import { Row } from "./row.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");

export class ListView {
  /** @param place what the server wrote: buttons, rows, which are taken over, and what makes another row
      @param side which list of the session this is: "list" or "other" */
  constructor(place, side, session) {
    Object.assign(this, { side, session, at: 0, rows: new Map(), order: [] });
    this.place = place.querySelector(".rows");
    this.blank = place.querySelector("template").content.firstElementChild;
    this.spare = [...this.place.children].map((one) => new Row(one));
    this.place.addEventListener("keydown", (event) => this.#key(event));
    this.place.addEventListener("click", (event) => this.#click(event));
    this.place.addEventListener("focusin", ({ target }) => this.#withRow(target, (at) => this.#current(at)));
    this.place.addEventListener("change", ({ target }) => target.matches(".doc") && this.#withRow(target, (at) => this.#rename(at)));
    draggable(this.place, () => this.order.map((row) => row.element), {
      hold: (at) => this.#hold(at),
      carry: (at) => ((this.at = at), session.carry(at)),
      drop: (back) => this.#drop(back),
    });
    const tools = {
      up: () => this.move(this.at, this.at - 1),
      down: () => this.move(this.at, this.at + 1),
      add: () => this.add(this.order.length ? this.at + 1 : 0),
      remove: () => this.order.length && this.remove(this.at),
    };
    for (const [name, act] of Object.entries(tools)) place.querySelector(`.tools .${name}`).addEventListener("click", act);
  }

  /** The documents as they are called. */
  get names() {
    return this.order.map((row) => row.called);
  }

  get items() {
    return this.session.state[this.side];
  }

  /** Show the items; rows keep their elements, so that what is focused or dragged stays it. */
  show(items, top) {
    this.at = Math.max(0, Math.min(this.at, items.length - 1));
    const before = this.rows;
    const next = (key) => before.get(key) ?? this.spare.shift() ?? new Row(this.blank.cloneNode(true));
    this.rows = new Map(items.map(({ key }) => [key, next(key)]));
    const order = [...this.rows.values()];
    if (order.length !== this.order.length || order.some((row, at) => row !== this.order[at])) this.#arrange(order);
    items.forEach((one, at) => order[at].show(one, at + 1, top, at === this.at));
  }

  /** Show what the server says of each row. */
  tell(facts) {
    [...facts].forEach((one, at) => this.order[at]?.tell(one));
  }

  /** Put the focus on a row. */
  focus(at) {
    if (this.order.length === 0) return;
    this.#current(Math.max(0, Math.min(at, this.order.length - 1)));
    this.order[this.at].focus?.focus();
    const { element } = this.order[this.at];
    requestAnimationFrame(() => element.scrollIntoView({ block: "nearest" })); // at once it would cost a layout more
  }

  /** Change the order in the document around the row that must not be taken out of it; while it is dragged, the others
      glide. A key moves a row at once: nothing should keep the numbers waiting. */
  #arrange(order) {
    const glides = this.held && !still.matches;
    const old = new Map(glides ? this.order.map((row) => [row, row.element.offsetTop]) : []);
    const fixed = this.held ?? this.order.find((row) => row.element.contains(document.activeElement));
    const wanted = order.map((row) => row.element);
    for (const child of [...this.place.children]) if (!wanted.includes(child)) child.remove();
    wanted.reduceRight((next, element) => {
      const isPlaced = element.isConnected && (element === fixed?.element || element.nextElementSibling === next);
      if (!isPlaced) this.place.insertBefore(element, next);
      return element;
    }, null);
    this.order = order;
    this.spare = [];
    for (const row of order) {
      const by = old.has(row) ? old.get(row) - row.element.offsetTop : 0;
      if (by && row !== this.held)
        row.element.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 140, easing: "ease-out" });
    }
  }

  /** Mark a row as the one that is used. */
  #current(at) {
    if (at === this.at) return;
    const past = this.at;
    this.at = at;
    for (const place of [past, at])
      if (this.items[place]) this.order[place].show(this.items[place], place + 1, this.session.top, place === at);
  }

  /** Do something with the place of the row in which an element is. */
  #withRow(element, act) {
    const row = element.closest(".row");
    const at = this.order.findIndex((one) => one.element === row);
    if (at >= 0) act(at);
  }

  #rename(at) {
    const field = this.order[at].doc;
    const name = field.value.trim();
    if (name) this.session.rename(this.side, at, name);
    else field.value = this.items[at].doc;
  }

  #grade(at, text) {
    this.session.grade(this.side, at, text === "-" ? null : Number(text));
  }

  #click({ target }) {
    const button = target.closest("button");
    if (!button) return;
    this.#withRow(button, (at) => {
      this.#current(at);
      if (button.dataset.grade) {
        this.#grade(at, button.dataset.grade);
        this.order[at].focus?.focus();
      } else if (button.matches(".remove")) this.remove(at);
      else if (button.matches(".more")) this.edit(at);
    });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey) return;
    this.#withRow(event.target, (at) => {
      const act = this.#moves(event, at) ?? (event.target.matches("input") ? null : this.#grades(event, at));
      if (!act) return;
      event.preventDefault();
      act();
    });
  }

  /** Keys that work everywhere in a row: up and down, with Alt to take the row along; and the one that ends a name. */
  #moves({ key, altKey, target }, at) {
    if (key === "Enter" && target.matches(".doc")) return () => (this.#rename(at), this.focus(this.at));
    const ends = altKey ? { Home: 0, End: this.order.length - 1 } : {};
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, ...ends }[key];
    if (to === undefined) return null;
    if (altKey || target.matches(".handle")) return () => this.move(at, to);
    return () => {
      this.focus(to);
      if (target.matches("input")) this.order[this.at].doc.select();
    };
  }

  #grades({ key, altKey, target }, at) {
    if (altKey) return null;
    const grade = (text) => () => this.#grade(at, text);
    if (/^[0-9]$/.test(key)) return grade(key);
    if (key === "-" || key === "u") return grade("-");
    if (key === "Delete" || key === "Backspace") return () => this.remove(at);
    if (key === "Insert" || key === "+") return () => this.add(at + 1);
    if (key === "." || key === ",") return () => this.edit(at, ".");
    if (!target.matches("[role=radio]")) return null;
    if (key === "Enter") return () => this.edit(at);
    const next = { ArrowLeft: target.previousElementSibling, ArrowRight: target.nextElementSibling }[key];
    return next ? grade(next.dataset.grade) : null;
  }

  move(from, to) {
    this.at = Math.max(0, Math.min(to, this.order.length - 1));
    this.session.move(this.side, from, to);
    this.order[this.at]?.element.scrollIntoView({ block: "nearest" });
  }

  remove(at) {
    this.session.remove(this.side, at);
    this.focus(at);
  }

  add(at) {
    this.session.add(this.side, at);
    this.focus(at);
  }

  /** Open the field for any number; `more` is what was typed to open it. */
  edit(at, more = "") {
    this.order[at].edit(more && `${this.items[at].grade ?? 0}${more}`, (value) => this.session.grade(this.side, at, value));
  }

  #hold(at) {
    this.#current(at);
    this.held = this.order[at];
    this.session.hold(this.side, at);
  }

  #drop(back) {
    const { held } = this;
    this.held = null;
    this.session.drop(back);
    this.at = this.order.indexOf(held);
    this.session.told.state(this.session);
    held?.focus?.focus({ preventScroll: true });
  }
}
