/* A list that is being edited: its state, what was before, and the answers of the API to it.

   Asking: one request at a time, and the newest state next. A request that newer ones wait for longer than
   PATIENCE is given up. Nothing that is in view is delayed on purpose. */
import { ask } from "../elements.js";
import * as edit from "./state.js";

const PATIENCE = 400;
const SETTLED = 60; // behind a change that is shown: a text that is read aloud costs another layout
const FOLDED = 1000; // before what nobody sees is asked for: the next key should not wait for it

const moveText = (doc, from, to) => `${doc || "The document"} moved from rank ${from + 1} to rank ${to + 1}.`;

/** Runs one task at a time; of those that come meanwhile only the newest is kept. */
export class Latest {
  #running = null;
  #next = null;

  /** Run `task(signal)` now, or next. */
  run(task) {
    if (!this.#running) return void this.#start(task);
    this.#next = task;
    const { control, since } = this.#running;
    const left = since + PATIENCE - performance.now();
    setTimeout(() => this.#running?.control === control && this.#next && control.abort(), Math.max(0, left));
  }

  async #start(task) {
    const control = new AbortController();
    this.#running = { control, since: performance.now() };
    try {
      await task(control.signal);
    } finally {
      this.#running = null;
      const next = this.#next;
      this.#next = null;
      if (next) this.#start(next);
    }
  }
}

export class Session {
  /** @param told { path(query, state), state(session), answer(answer, state, { only }), problem(error or null),
      say(text), inView() the families in view, if only they should be asked for first } */
  constructor(state, told) {
    const top = edit.topGrade(state);
    Object.assign(this, { state, told, top, before: null, held: null, grading: null, requests: new Latest() });
  }

  get query() {
    return edit.writeState(this.state);
  }

  /** Take a new state on, show it, and ask for its numbers. */
  apply(next, { before = null, said = "" } = {}) {
    this.state = next;
    this.before = before;
    this.grading = null;
    this.top = Math.max(this.top, edit.topGrade(next)); // buttons do not vanish under the hand
    this.refresh(); // first of all: the page is drawn while the server computes
    this.told.state(this);
    if (said) setTimeout(() => this.told.say(said), SETTLED); // at once it would cost another layout
  }

  /** Ask for the numbers of the state as it stands: first for what is in view, and when that is shown for the rest. */
  refresh() {
    this.rest?.abort();
    this.requests.run(async (signal) => {
      const { state, before } = this;
      const only = this.told.inView?.() ?? "";
      await this.#show(state, before, only, signal);
      if (!only || this.state !== state) return;
      this.rest = new AbortController();
      const { signal: later } = this.rest;
      setTimeout(() => later.aborted || this.#show(state, before, "", later), FOLDED);
    });
  }

  async #show(state, before, only, signal) {
    try {
      const query = edit.writeState(state, before);
      const path = this.told.path(only ? `${query}&only=${encodeURIComponent(only)}` : query, state);
      const answer = await ask(path, { signal });
      if (signal.aborted) return;
      this.told.problem(null);
      this.told.answer(answer, state, { only });
    } catch (error) {
      if (error.name !== "AbortError") this.told.problem(error);
    }
  }

  #edit(side, next, said, from = this.state) {
    this.apply(next, { before: side === "list" ? from.list : null, said });
  }

  grade(side, at, grade) {
    const { doc, grade: old } = this.state[side][at];
    if (old === grade) return;
    const said = `${doc || `Rank ${at + 1}`}: ${grade === null ? "unjudged" : `grade ${grade}`}, was ${old ?? "unjudged"}.`;
    const first = this.grading ?? this.state; // grades one after another are one change: what they do together is told
    this.#edit(side, edit.graded(this.state, side, at, grade), said, first);
    this.grading = first;
  }

  rename(side, at, doc) {
    const old = this.state[side][at].doc;
    if (doc && doc !== old) this.#edit(side, edit.renamed(this.state, side, at, doc), `${old || `Rank ${at + 1}`} is now called ${doc}.`);
  }

  remove(side, at) {
    const { doc } = this.state[side][at];
    this.#edit(side, edit.removed(this.state, side, at), `${doc || "The document"} was removed from rank ${at + 1}.`);
  }

  add(side, at) {
    if (this.state[side].length >= edit.LONGEST) return this.told.say(`A list has at most ${edit.LONGEST} documents.`);
    const next = edit.added(this.state, side, at);
    this.#edit(side, next, `${next[side][at].doc || "A document"} was added at rank ${at + 1}.`);
  }

  move(side, from, to) {
    if (to < 0 || to >= this.state[side].length || from === to) return;
    const { doc } = this.state[side][from];
    this.#edit(side, edit.moved(this.state, side, from, to), moveText(doc, from, to));
  }

  set(name, text) {
    if ((this.state.settings[name] ?? "") !== text) this.apply(edit.set(this.state, name, text));
  }

  /** Hold a row: until `drop` its moves are one change, and every measure tells how it moved since. */
  hold(side, at) {
    this.held = { side, from: at, at, state: this.state, before: this.before };
  }

  /** Move the row that is held. */
  carry(to) {
    const { side, at, state } = this.held;
    this.held.at = to;
    this.#edit(side, edit.moved(this.state, side, at, to), "", state);
  }

  /** Let go of the row, where it is or (`back`) where it was. */
  drop(back = false) {
    const { side, from, at, state, before } = this.held;
    this.held = null;
    if (this.state === state) return;
    if (back || from === at) return void this.apply(state, { before, said: back ? "The row is back where it was." : "" });
    this.told.say(moveText(this.state[side][at].doc, from, at));
  }
}
