/* An editing session: the state of the lists, the state before, and the responses of the API.

   There is one request at a time, and the newest state is next. A request is aborted if newer ones wait for longer than
   PATIENCE (ms). Requests for visible measures are never delayed. */
import { requestJson } from "../elements.js";
import * as edit from "./state.js";

const PATIENCE = 400;
const ANNOUNCE_DELAY = 60; // ms after a change; an announced text costs another layout
const REMAINDER_DELAY = 1000; // ms before the request for hidden measures, so that the next key need not wait

const moveText = (doc, from, to) => `${doc || "The document"} moved from rank ${from + 1} to rank ${to + 1}.`;

/** Runs one task at a time; of waiting tasks, only the newest is kept. */
export class Latest {
  #running = null;
  #next = null;

  /** Run `task(signal)` now, or next. */
  run(task) {
    if (!this.#running) return void this.#start(task);
    this.#next = task;
    const { control, since } = this.#running;
    const remaining = since + PATIENCE - performance.now();
    setTimeout(() => this.#running?.control === control && this.#next && control.abort(), Math.max(0, remaining));
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
  /** @param callbacks { path(query, state), state(session), answer(answer, state, { only }), problem(error or null),
      say(text), inView() the visible families, which are requested first } */
  constructor(state, callbacks) {
    const top = edit.topGrade(state);
    Object.assign(this, { state, callbacks, top, before: null, drag: null, grading: null, requests: new Latest() });
  }

  get query() {
    return edit.writeState(this.state);
  }

  /** Apply a new state, show it, and request its numbers. */
  apply(next, { before = null, message = "" } = {}) {
    this.state = next;
    this.before = before;
    this.grading = null;
    this.top = Math.max(this.top, edit.topGrade(next)); // grade buttons must not disappear while editing
    this.refresh(); // first, so that the server computes while the page is drawn
    this.callbacks.state(this);
    if (message) setTimeout(() => this.callbacks.say(message), ANNOUNCE_DELAY); // later, to avoid another layout
  }

  /** Request the numbers of the state: first of visible measures, then of the others. */
  refresh() {
    this.remainder?.abort();
    this.requests.run(async (signal) => {
      const { state, before } = this;
      const only = this.callbacks.inView?.() ?? "";
      await this.#show(state, before, only, signal);
      if (!only || this.state !== state) return;
      this.remainder = new AbortController();
      const { signal: later } = this.remainder;
      setTimeout(() => later.aborted || this.#show(state, before, "", later), REMAINDER_DELAY);
    });
  }

  async #show(state, before, only, signal) {
    try {
      const query = edit.writeState(state, before);
      const path = this.callbacks.path(only ? `${query}&only=${encodeURIComponent(only)}` : query, state);
      const answer = await requestJson(path, { signal });
      if (signal.aborted) return;
      this.callbacks.problem(null);
      this.callbacks.answer(answer, state, { only });
    } catch (error) {
      if (error.name !== "AbortError") this.callbacks.problem(error);
    }
  }

  #edit(side, next, message, from = this.state) {
    this.apply(next, { before: side === "list" ? from.list : null, message });
  }

  grade(side, index, grade) {
    const { doc, grade: oldGrade } = this.state[side][index];
    if (oldGrade === grade) return;
    const message = `${doc || `Rank ${index + 1}`}: ${grade === null ? "unjudged" : `grade ${grade}`}, previously ${oldGrade ?? "unjudged"}.`;
    const first = this.grading ?? this.state; // successive grades are one change, whose total effect is shown
    this.#edit(side, edit.graded(this.state, side, index, grade), message, first);
    this.grading = first;
  }

  rename(side, index, doc) {
    const oldName = this.state[side][index].doc;
    if (doc && doc !== oldName) this.#edit(side, edit.renamed(this.state, side, index, doc), `${oldName || `Rank ${index + 1}`} is now called ${doc}.`);
  }

  remove(side, index) {
    const { doc } = this.state[side][index];
    this.#edit(side, edit.removed(this.state, side, index), `${doc || "The document"} was removed from rank ${index + 1}.`);
  }

  add(side, index) {
    if (this.state[side].length >= edit.MAX_LENGTH) return this.callbacks.say(`A list can have at most ${edit.MAX_LENGTH} documents.`);
    const next = edit.added(this.state, side, index);
    this.#edit(side, next, `${next[side][index].doc || "A document"} was added at rank ${index + 1}.`);
  }

  move(side, from, to) {
    if (to < 0 || to >= this.state[side].length || from === to) return;
    const { doc } = this.state[side][from];
    this.#edit(side, edit.moved(this.state, side, from, to), moveText(doc, from, to));
  }

  set(name, text) {
    if ((this.state.settings[name] ?? "") !== text) this.apply(edit.set(this.state, name, text));
  }

  /** Start a drag: until `drop`, all moves are one change, and measures show the difference since its start. */
  hold(side, index) {
    this.drag = { side, from: index, index, state: this.state, before: this.before };
  }

  /** Move the dragged row. */
  carry(to) {
    const { side, index, state } = this.drag;
    this.drag.index = to;
    this.#edit(side, edit.moved(this.state, side, index, to), "", state);
  }

  /** End the drag, at the current index or (`isCanceled`) at the first. */
  drop(isCanceled = false) {
    const { side, from, index, state, before } = this.drag;
    this.drag = null;
    if (this.state === state) return;
    if (isCanceled || from === index) return void this.apply(state, { before, message: isCanceled ? "The move was canceled." : "" });
    this.callbacks.say(moveText(this.state[side][index].doc, from, index));
  }
}
