/* One row of a list, as the server wrote it or made of the same markup. */
import { mark, morph, write } from "./dom.js";

export class Row {
  constructor(element) {
    this.element = element;
    for (const name of ["handle", "rank", "grades", "any", "more", "doc", "remove"])
      this[name] = element.querySelector(`:scope > .${name}`);
    this.any.addEventListener("blur", () => this.#finish(true));
    this.any.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" || event.key === "Escape") this.#finish(event.key === "Enter");
    });
  }

  /** What the document is called, by the list or, where it has no name there, by judged. */
  get called() {
    return this.doc.value || this.doc.placeholder;
  }

  /** Show a document at a rank. */
  show({ doc, grade }, rank, top, current) {
    const hadFocus = this.grades.contains(document.activeElement);
    this.#choices(grade, top);
    write(this.rank, String(rank));
    const named = doc ? `${doc}, rank ${rank}` : `rank ${rank}`;
    if (this.named !== named) {
      this.named = named;
      for (const one of this.element.querySelectorAll("[data-label]")) mark(one, "aria-label", `${one.dataset.label} ${named}`);
      mark(this.doc, "aria-label", `Document at rank ${rank}`);
    }
    if (this.doc.value !== doc && document.activeElement !== this.doc) this.doc.value = doc;
    for (const one of this.grades.children) {
      const isChosen = one.dataset.grade === String(grade ?? "-");
      mark(one, "aria-checked", isChosen);
      mark(one, "tabindex", isChosen && current ? 0 : -1);
      if (isChosen && hadFocus && document.activeElement !== one) one.focus({ preventScroll: true });
    }
    for (const one of [this.handle, this.more, this.doc, this.remove]) mark(one, "tabindex", current ? 0 : -1);
    mark(this.element, "data-current", current ? "yes" : null);
  }

  /** Make a button for unjudged, each whole grade up to the top, and the grade itself if it is none of these. */
  #choices(grade, top) {
    const values = ["-", ...Array.from({ length: top + 1 }, (_, at) => String(at))];
    if (grade !== null && !values.includes(String(grade))) values.push(String(grade));
    const [unjudged, ...others] = this.grades.children;
    if (values.slice(1).join() === others.map((one) => one.dataset.grade).join()) return;
    const buttons = values.slice(1).map((value) => {
      const button = unjudged.cloneNode();
      button.removeAttribute("aria-label");
      button.dataset.grade = button.textContent = value;
      return button;
    });
    this.grades.replaceChildren(unjudged, ...buttons);
  }

  /** Show what the server says of the row. */
  tell(facts) {
    mark(this.element, "data-relevant", facts.dataset.relevant);
    mark(this.doc, "placeholder", facts.dataset.doc);
    for (const fact of facts.children) morph(this.element.querySelector(`:scope > .${fact.className}`), fact);
  }

  /** The control that stands for the row: the grade that is chosen, or the field for any number. */
  get focus() {
    return this.done ? this.any : this.grades.querySelector("[aria-checked=true]");
  }

  /** Put a field in the place of the buttons: it takes any number. */
  edit(text, done) {
    this.done = done;
    this.grades.hidden = true;
    this.any.hidden = false;
    this.any.value = text;
    this.any.focus();
    this.any.setSelectionRange(text.length, text.length);
  }

  #finish(keep) {
    const { done } = this;
    if (!done) return;
    this.done = null; // hiding the field takes the focus from it, which ends it too
    const typed = this.any.value.trim().replace(",", ".");
    const back = document.activeElement === this.any;
    this.any.hidden = true;
    this.grades.hidden = false;
    if (keep && typed !== "" && Number.isFinite(Number(typed))) done(Number(typed));
    if (back) this.focus?.focus();
  }
}
