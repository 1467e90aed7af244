/* The page of the evaluator: wires the lists, the settings, the measures and the address together. */
import { ask } from "../elements.js";
import { complain, mark, morph, parse, write } from "./dom.js";
import { ListView } from "./list.js";
import { MeasuresView } from "./measures.js";
import { pasting } from "./paste.js";
import { Latest, Session } from "./session.js";
import { apart, doubled, readState, SETTINGS, swapped, writeState } from "./state.js";

const API = "/api/v1/evaluator";
const PAUSE = 100; // a key that is held down makes one entry of the history: browsers refuse more than some hundred a minute
const REST = 250; // before the working is asked for: where another key comes sooner, its numbers come first
const PINS = "judged-pins"; // where this browser keeps what was pinned last

const $ = (id) => document.getElementById(id);
const workings = new Latest();
const views = {};
const shown = { query: $("evaluator").dataset.query, state: null, timer: 0 }; // the numbers in view are those of this state, and all are those of `whole`

/** Say something to those who listen, and write it above the measures. */
const say = (text) => write($("said"), text);

/** Tell what is wrong with a state; its numbers stay those of the last one that made sense. */
const tellProblem = (error) => complain($("problem"), error);

/** Read a state; where it does not say what is pinned, that is what was pinned last. */
const read = (query) => {
  const state = readState(query);
  const pin = localStorage.getItem(PINS) || $("settings").elements.pin.value;
  return { ...state, settings: { pin, focus: $("evaluator").dataset.focus, ...state.settings } };
};

const measures = new MeasuresView($("evaluator"), {
  focus: (key) => session.set("focus", key),
  pin: (key) => {
    const pins = session.state.settings.pin.split(",");
    const keys = pins.includes(key) ? pins.filter((one) => one !== key) : [...pins, key];
    localStorage.setItem(PINS, keys.join());
    session.set("pin", keys.join() || "none");
  },
  moved: () => shown.state === session.state && shown.whole !== session.state && session.refresh(),
});

const session = new Session(read(shown.query), {
  path: (query) => `${API}/numbers?${query}`,
  state: showState,
  answer: showAnswer,
  problem: tellProblem,
  say,
  inView: () => measures.inView(session.state.settings.focus),
});

for (const side of ["list", "other"]) views[side] = new ListView($(side).parentNode, side, session);

/* The history of the browser is that of the list: undo goes back in it, and redo forward. */
const past = { states: [], at: history.state?.at ?? 0, timer: 0 };

/** Give the state that is shown an entry of its own. */
const remember = () => {
  clearTimeout(past.timer);
  if (session.held || shown.state !== session.state || shown.query === history.state?.query) return;
  past.at += 1;
  past.states.splice(past.at, Infinity, shown.state); // what was undone is gone
  history.pushState({ at: past.at, query: shown.query }, "", `?${shown.query}`);
  showPast();
};

const showPast = () => {
  $("undo").disabled = past.at === 0;
  $("redo").disabled = past.at >= past.states.length - 1;
};

const undo = () => {
  remember();
  if (past.at > 0) history.back();
};

const redo = () => $("redo").disabled || history.forward();

/** Take on a state that was not made by a change of the one that is shown. */
const open = (state, said, before = null) => {
  session.apply(state, { before, said });
  fillSettings();
};

/** Take on the state of an entry of the history. */
const restore = ({ state: entry }) => {
  if (!entry) return; // a link within the page
  const said = entry.at < past.at ? "Undone." : "Redone.";
  past.at = entry.at;
  open(past.states[past.at] ?? read(entry.query), said, session.state.list);
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
  for (const [side, view] of Object.entries(views)) view.show(state[side] ?? [], top);
}

/** Show the numbers of a state, as the server wrote them. */
function showAnswer(html, state, { only }) {
  const answer = parse(html);
  for (const list of answer.querySelectorAll("[data-side]")) views[list.dataset.side].tell(list.children);
  measures.show(answer.querySelectorAll(".measure"), only);
  for (const part of answer.querySelectorAll("[id]")) morph($(part.id), part);
  $("relevant").placeholder = answer.dataset.relevant;
  Object.assign(shown, { query: answer.dataset.query, state, whole: only ? shown.whole : state });
  const name = arrange(state);
  clearTimeout(past.timer);
  past.timer = setTimeout(remember, PAUSE);
  clearTimeout(shown.timer);
  if (name) shown.timer = setTimeout(() => work(writeState(state), name), REST);
  document.dispatchEvent(new CustomEvent("evaluated"));
}

/** Put measures where a state has them, and give the name of the one in focus. */
function arrange({ settings }) {
  return measures.arrange(settings.pin.split(","), settings.focus);
}

/** Ask for the working of the measure in focus, and show it; its steps stay open. */
const work = (query, name) => workings.run(async (signal) => {
  const asked = `${query}&measure=${encodeURIComponent(name)}`;
  if (query !== session.query || asked === shown.work) return;
  try {
    const working = parse(await ask(`${API}/working?${asked}`, { signal }));
    if (query !== session.query) return; // that of the next state is on its way
    working.querySelector(".sheets").open = $("working").querySelector(".sheets")?.open;
    $("working").replaceChildren(working);
    shown.work = asked;
  } catch (error) {
    if (error.name !== "AbortError") write($("working"), error.message);
  }
});

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
  const { name } = field, { rule, default: usual } = field.dataset;
  if (!SETTINGS.includes(name)) return;
  const now = session.state.settings[name] || usual;
  const wrong = field.checkValidity() ? "" : `${rule}.${now ? ` The numbers are still for ${now}.` : ""}`;
  if (rule) tellField(field, wrong);
  if (!wrong) session.set(name, field.value.trim() === usual ? "" : field.value.trim());
};

const ON_CLICK = {
  undo,
  redo,
  reset: async () => {
    const { run = "", topic = "", other_run = "" } = session.state.settings;
    try {
      const first = await ask(`${API}?${new URLSearchParams({ run, topic, other_run })}`);
      open(read(first.query), "Reset.");
    } catch (error) {
      tellProblem(error);
    }
  },
  compare: () => {
    session.apply(doubled(session.state), { said: "A second list, a copy of the first, stands beside it." });
    views.other.focus(0);
  },
  single: () => {
    session.apply({ ...session.state, other: null }, { said: "The second list was removed." });
    $("compare").focus();
  },
  swap: () => session.apply(swapped(session.state, views.other.names), { said: "A and B were swapped." }),
  own: () => session.apply(apart(session.state), {
    said: "Grades of B are its own now: each of its documents is taken for one of A with the same grade, where there is one.",
  }),
};

const start = () => {
  shown.state = shown.whole = session.state;
  shown.work = `${session.query}&measure=${encodeURIComponent($("working").firstElementChild?.dataset.name)}`;
  past.states[past.at] = session.state;
  history.replaceState({ at: past.at, query: shown.query }, "");
  fillSettings();
  showState(session);
  arrange(session.state);
  for (const [id, act] of Object.entries(ON_CLICK)) $(id).addEventListener("click", act);
  $("settings").addEventListener("input", takeSettings);
  $("settings").addEventListener("submit", (event) => event.preventDefault());
  const search = $("find-measure");
  $("filter").addEventListener("input", () => measures.find($("filter").value, (text, first) => {
    write($("found"), text);
    search.dataset.first = first ?? "";
  }));
  search.addEventListener("submit", (event) => {
    event.preventDefault();
    if (search.dataset.first) session.set("focus", search.dataset.first);
  });
  addEventListener("popstate", restore);
  addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if (event.target.matches("input, textarea, select") || !(event.ctrlKey || event.metaKey) || !"zy".includes(key)) return;
    event.preventDefault();
    (key === "y" || event.shiftKey ? redo : undo)();
  });
  pasting(() => session.query, (query, said, into) => {
    open(read(query), said);
    views[into].focus(0);
  });
  document.documentElement.dataset.ready = "yes";
};

start();
