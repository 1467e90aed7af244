/* One row of a list, from the server or from the same template. */
import { updateAttribute, morph, setText } from "./dom.js";

export class Row {
  constructor(element) {
    this.element = element;
    for (const name of ["handle", "rank", "grades", "entry", "more", "doc", "remove"])
      this[name] = element.querySelector(`:scope > .${name}`);
    this.entry.addEventListener("blur", () => this.#finish(true));
    this.entry.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" || event.key === "Escape") this.#finish(event.key === "Enter");
    });
  }

  /** Name of the document in the list, or the name from the server. */
  get displayName() {
    return this.doc.value || this.doc.placeholder;
  }

  /** Show a document at a rank. */
  show({ doc, grade }, rank, top, isCurrent) {
    const hadFocus = this.grades.contains(document.activeElement);
    this.#updateGrades(grade, top);
    setText(this.rank, String(rank));
    const label = doc ? `${doc}, rank ${rank}` : `rank ${rank}`;
    if (this.label !== label) {
      this.label = label;
      for (const element of this.element.querySelectorAll("[data-label]")) updateAttribute(element, "aria-label", `${element.dataset.label} ${label}`);
      updateAttribute(this.doc, "aria-label", `Document at rank ${rank}`);
    }
    if (this.doc.value !== doc && document.activeElement !== this.doc) this.doc.value = doc;
    for (const element of this.grades.children) {
      const isSelected = element.dataset.grade === String(grade ?? "-");
      updateAttribute(element, "aria-checked", isSelected);
      updateAttribute(element, "tabindex", isSelected && isCurrent ? 0 : -1);
      if (isSelected && hadFocus && document.activeElement !== element) element.focus({ preventScroll: true });
    }
    for (const element of [this.handle, this.more, this.doc, this.remove]) updateAttribute(element, "tabindex", isCurrent ? 0 : -1);
    updateAttribute(this.element, "data-current", isCurrent ? "yes" : null);
  }

  /** Create buttons: unjudged, each whole grade up to the top, and the current grade. */
  #updateGrades(grade, top) {
    const values = ["-", ...Array.from({ length: top + 1 }, (_, i) => String(i))];
    if (grade !== null && !values.includes(String(grade))) values.push(String(grade));
    const [unjudged, ...others] = this.grades.children;
    if (values.slice(1).join() === others.map((element) => element.dataset.grade).join()) return;
    const buttons = values.slice(1).map((value) => {
      const button = unjudged.cloneNode();
      button.removeAttribute("aria-label");
      button.dataset.grade = button.textContent = value;
      return button;
    });
    this.grades.replaceChildren(unjudged, ...buttons);
  }

  /** Show the facts of the row from the server. */
  showFacts(facts) {
    updateAttribute(this.element, "data-relevant", facts.dataset.relevant);
    updateAttribute(this.doc, "placeholder", facts.dataset.doc);
    for (const fact of facts.children) morph(this.element.querySelector(`:scope > .${fact.className}`), fact);
  }

  /** The control to focus: the selected grade, or the field for any number. */
  get focus() {
    return this.onFinish ? this.entry : this.grades.querySelector("[aria-checked=true]");
  }

  /** Replace the buttons by a field for any number. */
  edit(text, onFinish) {
    this.onFinish = onFinish;
    this.grades.hidden = true;
    this.entry.hidden = false;
    this.entry.value = text;
    this.entry.focus();
    this.entry.setSelectionRange(text.length, text.length);
  }

  #finish(isAccepted) {
    const { onFinish } = this;
    if (!onFinish) return;
    this.onFinish = null; // before hiding the field, which blurs it and would call this again
    const text = this.entry.value.trim().replace(",", ".");
    const hadFocus = document.activeElement === this.entry;
    this.entry.hidden = true;
    this.grades.hidden = false;
    if (isAccepted && text !== "" && Number.isFinite(Number(text))) onFinish(Number(text));
    if (hadFocus) this.focus?.focus();
  }
}
