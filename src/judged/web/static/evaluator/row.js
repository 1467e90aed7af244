/* One row of a list. The server writes the same elements; `adopt` takes either. */
import { make, mark, score, write } from "./dom.js";

const UNJUDGED = "–";

const button = (name, text, more = {}) => make("button", { type: "button", class: name, text, tabindex: -1, ...more });

/** Build an empty row. */
const build = () =>
  make("li", { class: "row" },
    button("handle", "⠿"),
    make("span", { class: "rank" }),
    make("span", { class: "grades", role: "radiogroup" }),
    button("more", "…", { title: "Any other grade (Enter)" }),
    make("input", { class: "doc", type: "text", maxlength: 200, autocomplete: "off", spellcheck: "false", tabindex: -1 }),
    make("span", { class: "moved" }),
    make("span", { class: "there" }),
    make("span", { class: "gain" }),
    make("span", { class: "discount" }),
    button("remove", "×", { title: "Remove (Delete)" }));

const radio = (value) =>
  make("button", {
    type: "button", role: "radio", tabindex: -1, text: value || UNJUDGED, "data-grade": value || "-",
    "aria-label": value ? null : "unjudged", class: value.length > 1 ? "long" : null,
  });

export class Row {
  /** @param element a row as the server wrote it, or nothing for a new one */
  constructor(element = build()) {
    this.element = element;
    for (const name of ["handle", "rank", "grades", "more", "doc", "moved", "there", "gain", "discount", "remove"])
      this[name] = element.querySelector(`:scope > .${name}`);
    this.scale = "";
    this.name = "";
  }

  /** Show a document at a rank. */
  show({ doc, grade }, rank, top, current) {
    this.#choices(grade, top);
    const named = doc ? `${doc}, rank ${rank}` : `rank ${rank}`;
    write(this.rank, String(rank));
    if (this.name !== named) {
      this.name = named;
      mark(this.handle, "aria-label", `Move ${named}`);
      mark(this.grades, "aria-label", `Grade of ${named}`);
      mark(this.more, "aria-label", `Another grade for ${named}`);
      mark(this.doc, "aria-label", `Document at rank ${rank}`);
      mark(this.remove, "aria-label", `Remove ${named}`);
    }
    if (this.doc.value !== doc && document.activeElement !== this.doc) this.doc.value = doc;
    this.#check(grade === null ? "-" : String(grade), current);
  }

  /** Show what the API says of the row. */
  tell(facts, rank, two) {
    mark(this.element, "data-relevant", facts.relevant === null ? null : facts.relevant ? "yes" : "no");
    mark(this.doc, "placeholder", facts.doc);
    const { rank_before: before, rank_in_other: there } = facts;
    const rise = before === null || before === rank ? "" : before > rank ? "up" : "down";
    mark(this.element, "data-moved", rise || null);
    write(this.moved, rise ? `${rise === "up" ? "▲" : "▼"}${before}` : "");
    mark(this.moved, "title", rise ? `was at rank ${before}` : null);
    write(this.there, two ? (there === null ? "·" : String(there)) : "");
    mark(this.there, "title", two ? (there === null ? "not in the other list" : `rank ${there} in the other list`) : null);
    write(this.gain, facts.gain === null ? "" : score(facts.gain, 2));
    write(this.discount, facts.discount === null ? "" : score(facts.discount, 3));
  }

  /** The control that stands for the row: the grade that is chosen, or the field for any number. */
  get focus() {
    return this.any ?? this.grades.querySelector("[aria-checked=true]");
  }

  /** Put a field in the place of the buttons: it takes any number. */
  edit(text, done) {
    if (this.any) return this.any.focus();
    const field = make("input", { class: "any", type: "text", inputmode: "decimal", autocomplete: "off" });
    mark(field, "aria-label", `Grade of ${this.name}: any number`);
    field.value = text;
    const finish = (keep) => {
      if (!this.any) return;
      this.any = null;
      const typed = field.value.trim().replace(",", ".");
      const back = document.activeElement === field;
      field.remove();
      this.grades.hidden = false;
      if (keep && typed !== "" && Number.isFinite(Number(typed))) done(Number(typed));
      if (back) this.focus?.focus();
    };
    field.addEventListener("blur", () => finish(true));
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" || event.key === "Escape") finish(event.key === "Enter");
    });
    this.grades.hidden = true;
    this.any = field;
    this.grades.after(field);
    field.focus();
    field.setSelectionRange(text.length, text.length);
  }

  /** Make a button for unjudged, each whole grade up to the top, and the grade itself if it is none of these. */
  #choices(grade, top) {
    const values = ["", ...Array.from({ length: top + 1 }, (_, at) => String(at))];
    if (grade !== null && !values.includes(String(grade))) values.push(String(grade));
    const scale = values.join();
    if (this.scale === scale) return;
    this.scale = scale;
    const there = [...this.grades.children].map((one) => one.dataset.grade.replace("-", "")).join();
    if (there !== scale) {
      const focused = this.grades.contains(document.activeElement);
      this.grades.replaceChildren(...values.map(radio));
      if (focused) this.refocus = true;
    }
  }

  #check(value, current) {
    let chosen = null;
    for (const one of this.grades.children) {
      const here = one.dataset.grade === value;
      if (here) chosen = one;
      mark(one, "aria-checked", here);
      mark(one, "tabindex", here && current ? 0 : -1);
    }
    for (const one of [this.handle, this.more, this.doc, this.remove]) mark(one, "tabindex", current ? 0 : -1);
    mark(this.element, "data-current", current ? "yes" : null);
    const focused = this.refocus || (this.grades.contains(document.activeElement) && document.activeElement !== chosen);
    this.refocus = false;
    if (focused) chosen.focus({ preventScroll: true });
  }
}

