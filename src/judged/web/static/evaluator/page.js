/* The page of the evaluator: wires the lists, the settings, the measures and the address together. */
import { mark, write } from "./dom.js";
import { ListView } from "./list.js";
import { MeasuresView } from "./measures.js";
import { pasting } from "./paste.js";
import { ask, Latest, Session } from "./session.js";
import { apart, doubled, readState, SETTINGS, swapped, writeState } from "./state.js";

const API = "/api/v1/evaluator";
const PAUSE = 100; // a key that is held down makes one entry of the history: browsers refuse more than some hundred a minute
const PINS = localStorage.getItem("judged-pins") || "P,R,F,AP,nDCG,RR"; // where the address names none
const FOCUS = "nDCG";

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("evaluator-data").textContent);
const views = {};
const shown = { answer: data, state: null };
const workings = new Latest();

/** Say something to those who listen, and write it above the measures. */
const say = (text) => write($("said"), text);

const measures = new MeasuresView($("evaluator"), {
  focus: (key) => session.set("focus", key === FOCUS ? "" : key),
  pin: (keys) => {
    localStorage.setItem("judged-pins", keys.join());
    session.set("pin", keys.join() || "none");
  },
});

const session = new Session(readState(data.query), {
  path: (query) => `${API}?${query}`,
  state: showState,
  answer: showAnswer,
  problem: showProblem,
  say,
  inView: () => measures.inView,
});

for (const side of ["list", "other"]) views[side] = new ListView($(side), side, session);

/* The history of the browser is that of the list: undo goes back in it, and redo forward. */
const past = { states: [], at: 0, last: 0, timer: 0 };

/** Give the state that is shown an entry of its own. */
const remember = () => {
  clearTimeout(past.timer);
  const { answer, state } = shown;
  if (session.held || state !== session.state || answer.query === past.query) return;
  past.at += 1;
  past.states[past.at] = state;
  past.query = answer.query;
  past.last = past.at;
  history.pushState({ at: past.at, query: past.query }, "", `?${past.query}`);
  showPast();
};

const showPast = () => {
  $("undo").disabled = past.at === 0;
  $("redo").disabled = past.at >= past.last;
};

const undo = () => {
  remember();
  if (past.at > 0) history.back();
};

const redo = () => past.at < past.last && history.forward();

/** Take on the state of an entry of the history. */
const restore = ({ state: entry }) => {
  if (!entry) return; // a link within the page
  const { at, query } = entry;
  const said = at < past.at ? "Undone." : "Redone.";
  Object.assign(past, { at, query });
  session.apply(past.states[at] ?? readState(query), { before: session.state.list, said });
  fillSettings();
  showPast();
};

/** Show a state at once, before its numbers are known. */
function showState({ state, top }) {
  const two = state.other !== null;
  $("evaluator").classList.toggle("two", two);
  mark($("evaluator"), "data-top", top);
  $("second").hidden = !two;
  $("compare").hidden = two;
  write($("list-title"), two ? "List A" : "List");
  views.list.show(state.list, top);
  views.other.show(state.other ?? [], top);
  for (const side of ["list", "other"]) $(`${side}-empty`).hidden = state[side]?.length !== 0;
}

/** Show the numbers of a state. */
function showAnswer(answer, state, { only = "" } = {}) {
  const two = state.other !== null;
  for (const { list: side, returned, judged, relevant_found: relevant, ...counts } of answer.counts) {
    views[side].tell(answer[side], two);
    write($(`${side}-counts`), `${returned} returned, ${judged} judged, ${relevant} relevant`);
    for (const [name, count] of Object.entries(counts)) write($(`${side}-${name}`), String(count ?? "–"));
  }
  measures.show(answer, only);
  const name = measures.arrange((state.settings.pin || PINS).split(","), state.settings.focus || FOCUS);
  if (name) setTimeout(() => work(writeState(state), name), PAUSE / 2); // behind the numbers
  $("relevant").placeholder = String(answer.state.relevant);
  if (!only) showNotes(answer.notes.map(({ text }) => text));
  if (!answer.state.source) document.querySelector(".source").replaceChildren();
  Object.assign(shown, { answer, state });
  for (const link of document.querySelectorAll("[data-export]"))
    link.href = `${API}/export?${answer.query}&format=${link.dataset.export}`;
  for (const link of document.querySelectorAll("[data-twin]")) link.href = `${API}?${answer.query}`;
  clearTimeout(past.timer);
  past.timer = setTimeout(remember, PAUSE);
  document.dispatchEvent(new CustomEvent("evaluated"));
}

/** Ask for the working of the measure in focus, and show it; its steps stay open. */
const work = (query, name) => workings.run(async (signal) => {
  if (query !== session.query || `${query} ${name}` === shown.work) return;
  try {
    const html = await ask(`/evaluator/working?${query}&measure=${encodeURIComponent(name)}`, { signal });
    const open = $("working").querySelector(".sheets")?.open;
    $("working").innerHTML = html; // a page of judged's own, in which every text is escaped
    $("working").querySelector(".sheets").open = open;
    shown.work = `${query} ${name}`;
  } catch (error) {
    if (error.name !== "AbortError") write($("working"), error.message);
  }
});

function showNotes(texts) {
  const list = $("notes");
  if (list.children.length === texts.length && texts.every((text, at) => list.children[at].textContent === text)) return;
  list.replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

/** Tell what is wrong with a state; its numbers stay those of the last one that made sense. */
function showProblem(error) {
  const text = error ? [error.message, error.fix].filter(Boolean).join(". Fix: ") : "";
  write($("problem"), text);
  $("problem").hidden = !text;
  $("measures").classList.toggle("stale", Boolean(text));
}

/** Take on the state of an address, as one change that can be undone. */
const load = async (query, text) => {
  try {
    const answer = await ask(`${API}?${query}`);
    session.apply(readState(answer.query), { said: text });
    fillSettings();
  } catch (error) {
    showProblem(error);
  }
};

/** Say at a field what is wrong with it; nothing if it is right. */
const tellField = (field, wrong) => {
  mark(field, "aria-invalid", wrong ? "true" : null);
  write($(`${field.name}-wrong`), wrong);
};

/** Put the settings of the state into their fields. */
const fillSettings = () => {
  for (const name of SETTINGS) {
    const field = $("settings").elements[name];
    if (!field?.dataset || document.activeElement === field) continue;
    field.value = session.state.settings[name] || field.dataset.default || "";
    if (field.dataset.rule) tellField(field, "");
  }
};

/** Take a setting on as it is typed; one that makes no sense is said at its field, and changes nothing. */
const takeSettings = ({ target: field }) => {
  const { name, value } = field;
  if (!SETTINGS.includes(name)) return;
  const now = session.state.settings[name] || field.dataset.default;
  const wrong = field.checkValidity() ? "" : `${field.dataset.rule}.${now ? ` The numbers are still for ${now}.` : ""}`;
  if (field.dataset.rule) tellField(field, wrong);
  if (!wrong) session.set(name, value.trim() === field.dataset.default ? "" : value.trim());
};

const copyLink = async () => {
  const link = new URL(`?${shown.answer.query}`, location.href).href;
  try {
    await navigator.clipboard.writeText(link);
    say("The link is copied.");
  } catch {
    say(link); // only pages of this machine may write to the clipboard
  }
};

const ON_CLICK = {
  undo,
  redo,
  reset: () => {
    const { run, topic, other_run: other } = session.state.settings;
    const query = new URLSearchParams(Object.entries({ run, topic, other_run: other }).filter(([, value]) => value));
    load(query.toString(), "Reset.");
  },
  compare: () => {
    session.apply(doubled(session.state), { said: "A second list, a copy of the first, stands beside it." });
    views.other.focus(0);
  },
  single: () => {
    session.apply({ ...session.state, other: null }, { said: "The second list was removed." });
    $("compare").focus();
  },
  swap: () => session.apply(swapped(session.state, shown.answer), { said: "A and B were swapped." }),
  own: () => session.apply(apart(session.state), {
    said: "Grades of B are its own now: each of its documents is taken for one of A with the same grade, where there is one.",
  }),
  copy: copyLink,
};

/** Connect buttons that work on the row of a list that was used last. */
const toolbar = (side) => {
  const view = views[side];
  const on = (name, act) => $(`${side}-${name}`).addEventListener("click", act);
  on("up", () => view.move(view.at, view.at - 1));
  on("down", () => view.move(view.at, view.at + 1));
  on("add", () => view.add(view.order.length ? view.at + 1 : 0));
  on("remove", () => view.order.length && view.remove(view.at));
};

const start = () => {
  past.at = past.last = history.state?.at ?? 0;
  past.states[past.at] = session.state;
  past.query = data.query;
  history.replaceState({ at: past.at, query: data.query }, "");
  shown.work = `${session.query} ${$("working").firstElementChild?.dataset.name}`;
  fillSettings();
  showState(session);
  showAnswer(data, session.state);
  for (const [id, act] of Object.entries(ON_CLICK)) $(id).addEventListener("click", act);
  for (const side of ["list", "other"]) toolbar(side);
  $("settings").addEventListener("input", takeSettings);
  $("settings").addEventListener("submit", (event) => event.preventDefault());
  $("filter").addEventListener("input", () => measures.find($("filter").value, (text, first) => {
    write($("found"), text);
    $("find-measure").dataset.first = first ?? "";
  }));
  $("find-measure").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("find-measure").dataset.first) session.set("focus", $("find-measure").dataset.first);
  });
  addEventListener("popstate", restore);
  addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if (event.target.matches("input, textarea, select") || !(event.ctrlKey || event.metaKey) || !"zy".includes(key)) return;
    event.preventDefault();
    (key === "y" || event.shiftKey ? redo : undo)();
  });
  pasting(() => session.query, (query, text) => {
    session.apply(readState(query), { said: text });
    fillSettings();
    views[$("paste-form").elements.into.value].focus(0);
  });
  const second = $("load")?.elements.other_run; // without scripts there is no way to leave a field out
  if (second) {
    addEventListener("pageshow", () => (second.disabled = false));
    second.form.addEventListener("submit", () => (second.disabled = second.value === ""));
  }
  document.documentElement.dataset.ready = "yes";
};

start();
