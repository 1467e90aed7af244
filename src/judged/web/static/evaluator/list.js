/* A list as a control: rows with grades and names, by keyboard, mouse and touch. */
import { draggable } from "./drag.js";
import { Row } from "./row.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");

export class ListView {
  /** @param place the `ol`; rows that the server wrote are taken over
      @param side which list of the session this is: "list" or "other" */
  constructor(place, side, session) {
    Object.assign(this, { place, side, session, at: 0, rows: new Map(), order: [] });
    this.spare = [...place.children].map((one) => new Row(one));
    place.addEventListener("keydown", (event) => this.#key(event));
    place.addEventListener("click", (event) => this.#click(event));
    place.addEventListener("focusin", (event) => this.#enter(event));
    place.addEventListener("change", (event) => this.#change(event));
    draggable(place, () => this.order.map((row) => row.element), {
      hold: (at) => this.#hold(at),
      carry: (at) => ((this.at = at), session.carry(at)),
      drop: (back) => this.#drop(back),
    });
  }

  /** Show the items; rows keep their elements, so that what is focused or dragged stays it. */
  show(items, top) {
    this.at = Math.max(0, Math.min(this.at, items.length - 1));
    const before = this.rows;
    this.rows = new Map(items.map((one) => [one.key, before.get(one.key) ?? this.spare.shift() ?? new Row()]));
    const order = [...this.rows.values()];
    const isSame = order.length === this.order.length && order.every((row, at) => row === this.order[at]);
    if (!isSame) this.#arrange(order);
    items.forEach((one, at) => order[at].show(one, at + 1, top, at === this.at));
  }

  /** Show what the API says of each row. */
  tell(facts, two) {
    facts.forEach((one, at) => this.order[at]?.tell(one, at + 1, two));
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
    const anchor = order.includes(fixed) ? fixed.element : null;
    const wanted = new Set(order.map((row) => row.element));
    for (const child of [...this.place.children]) if (!wanted.has(child)) child.remove();
    const pivot = anchor ? order.findIndex((row) => row.element === anchor) : order.length;
    const put = (element, next) => element.nextElementSibling === next && element.isConnected
      ? null : this.place.insertBefore(element, next);
    for (let at = pivot - 1; at >= 0; at -= 1) put(order[at].element, order[at + 1]?.element ?? null);
    for (let at = order.length - 1; at > pivot; at -= 1) put(order[at].element, order[at + 1]?.element ?? null);
    this.order = order;
    this.spare = [];
    for (const row of order) {
      const by = old.has(row) ? old.get(row) - row.element.offsetTop : 0;
      if (by && row !== this.held)
        row.element.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 140, easing: "ease-out" });
    }
  }

  #current(at) {
    if (at === this.at) return;
    const { list, other } = this.session.state;
    const items = this.side === "list" ? list : other;
    const past = this.at;
    this.at = at;
    for (const place of [past, at])
      if (items[place]) this.order[place].show(items[place], place + 1, this.session.top, place === at);
  }

  #placeOf(target) {
    const element = target.closest(".row");
    return this.order.findIndex((row) => row.element === element);
  }

  #enter(event) {
    const at = this.#placeOf(event.target);
    if (at >= 0) this.#current(at);
  }

  #change(event) {
    if (event.target.matches(".doc")) this.#rename(event.target);
  }

  #rename(field) {
    const at = this.#placeOf(field);
    if (at < 0) return;
    const name = field.value.trim();
    if (name) this.session.rename(this.side, at, name);
    else field.value = this.session.state[this.side][at].doc;
  }

  #click(event) {
    const at = this.#placeOf(event.target);
    const target = event.target.closest("button");
    if (at < 0 || !target) return;
    this.#current(at);
    const { grade } = target.dataset;
    if (grade !== undefined) {
      this.session.grade(this.side, at, grade === "-" ? null : Number(grade));
      this.order[at].focus?.focus();
    } else if (target.matches(".remove")) this.remove(at);
    else if (target.matches(".more")) this.edit(at);
  }

  #key(event) {
    const at = this.#placeOf(event.target);
    if (at < 0 || event.ctrlKey || event.metaKey) return;
    const typing = event.target.matches("input");
    const act = this.#moves(event, at, typing) ?? (typing ? this.#inName(event) : this.#grades(event, at));
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Keys that work everywhere in a row: up and down, with Alt to take the row along. */
  #moves({ key, altKey, target }, at, typing) {
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: altKey ? 0 : null, End: altKey ? this.order.length - 1 : null }[key];
    if (to === undefined || to === null) return null;
    if (altKey || target.matches(".handle")) return () => this.move(at, to);
    return () => {
      this.focus(to);
      if (typing) this.order[this.at].doc.select();
    };
  }

  #inName({ key, target }) {
    return key === "Enter" ? () => (this.#rename(target), this.focus(this.at)) : null;
  }

  #grades({ key, altKey, target }, at) {
    if (altKey) return null;
    const grade = (value) => () => this.session.grade(this.side, at, value);
    if (/^[0-9]$/.test(key)) return grade(Number(key));
    if (key === "Delete" || key === "Backspace") return () => this.remove(at);
    if (key === "Insert" || key === "+") return () => this.add(at + 1);
    if (key === "-" || key === "u") return grade(null);
    if (key === "." || key === ",") return () => this.edit(at, ".");
    if (!target.matches("[role=radio]")) return null;
    if (key === "Enter") return () => this.edit(at);
    if (key === "ArrowLeft" || key === "ArrowRight") return this.#sideways(key, target, grade);
    return null;
  }

  #sideways(key, target, grade) {
    const next = key === "ArrowLeft" ? target.previousElementSibling : target.nextElementSibling;
    const value = next?.dataset.grade;
    return next ? grade(value === "-" ? null : Number(value)) : () => {};
  }

  move(from, to) {
    this.at = Math.max(0, Math.min(to, this.order.length - 1));
    this.session.move(this.side, from, to);
    this.order[this.at]?.element.scrollIntoView({ block: "nearest" });
  }

  remove(at) {
    this.session.remove(this.side, at);
    this.focus(Math.min(at, this.order.length - 1));
  }

  add(at) {
    this.session.add(this.side, at);
    this.focus(at);
  }

  /** Open the field for any number; `more` is what was typed to open it. */
  edit(at, more = "") {
    const { grade } = this.session.state[this.side][at];
    this.order[at].edit(more ? `${grade ?? 0}${more}` : "", (value) => this.session.grade(this.side, at, value));
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
