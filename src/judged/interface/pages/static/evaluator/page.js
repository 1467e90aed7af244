/* Page of the evaluator: connects lists, settings, measures, and the URL. */
import { requestJson } from "../elements.js";
import { showError, updateAttribute, morph, parse, setText } from "./dom.js";
import { ListView } from "./list.js";
import { MeasuresView } from "./measures.js";
import { connectPasteDialog } from "./paste.js";
import { Latest, Session } from "./session.js";
import { withoutNames, withCopy, readState, SETTINGS, swapped, writeState } from "./state.js";

const API = "/api/v1/evaluator";
const HISTORY_DELAY = 100; // a held key makes one history entry; browsers limit their number per minute
const CALCULATION_DELAY = 250; // before the calculation is requested, so that the numbers of a next key come first
const PINS_KEY = "judged-pins"; // storage key of the last pinned measures

const $ = (id) => document.getElementById(id);
const calculations = new Latest();
const views = {};
const view = { query: $("evaluator").dataset.query, state: null, timer: 0 }; // visible numbers belong to `state`, all numbers to `complete`

/** Show a message above the measures, and announce it to screen readers. */
const announce = (text) => setText($("announcement"), text);

/** Show the error of a state; the numbers of the last valid state stay. */
const showProblem = (error) => showError($("problem"), error);

/** Read a state; the default of pinned measures is the last selection. */
const read = (query) => {
  const state = readState(query);
  const pin = localStorage.getItem(PINS_KEY) || $("settings").elements.pin.value;
  return { ...state, settings: { pin, focus: $("evaluator").dataset.focus, ...state.settings } };
};

const measures = new MeasuresView($("evaluator"), {
  focus: (key) => session.set("focus", key),
  pin: (key) => {
    const pins = session.state.settings.pin.split(",");
    const keys = pins.includes(key) ? pins.filter((pinnedKey) => pinnedKey !== key) : [...pins, key];
    localStorage.setItem(PINS_KEY, keys.join());
    session.set("pin", keys.join() || "none");
  },
  moved: () => view.state === session.state && view.complete !== session.state && session.refresh(),
});

const session = new Session(read(view.query), {
  path: (query) => `${API}/numbers?${query}`,
  state: showState,
  answer: showAnswer,
  problem: showProblem,
  say: announce,
  inView: () => measures.inView(session.state.settings.focus),
});

for (const side of ["list", "other"]) views[side] = new ListView($(side).parentNode, side, session);

/* Undo and redo use the history of the browser. */
const undoHistory = { states: [], index: history.state?.index ?? 0, timer: 0 };

/** Add a history entry for the current state. */
const pushHistory = () => {
  clearTimeout(undoHistory.timer);
  if (session.drag || view.state !== session.state || view.query === history.state?.query) return;
  undoHistory.index += 1;
  undoHistory.states.splice(undoHistory.index, Infinity, view.state); // drops undone states
  history.pushState({ index: undoHistory.index, query: view.query }, "", `?${view.query}`);
  updateUndoButtons();
};

const updateUndoButtons = () => {
  $("undo").disabled = undoHistory.index === 0;
  $("redo").disabled = undoHistory.index >= undoHistory.states.length - 1;
};

const undo = () => {
  pushHistory();
  if (undoHistory.index > 0) history.back();
};

const redo = () => $("redo").disabled || history.forward();

/** Apply a state that is not an edit of the current one. */
const applyState = (state, message, before = null) => {
  session.apply(state, { before, message });
  fillSettings();
};

/** Apply the state of a history entry. */
const restore = ({ state: entry }) => {
  if (!entry) return; // a link within the page
  const message = entry.index < undoHistory.index ? "Undone." : "Redone.";
  undoHistory.index = entry.index;
  applyState(undoHistory.states[undoHistory.index] ?? read(entry.query), message, session.state.list);
  updateUndoButtons();
};

/** Show a state before its numbers are known. */
function showState({ state, top }) {
  const hasTwo = state.other !== null;
  $("evaluator").classList.toggle("two", hasTwo);
  updateAttribute($("evaluator"), "data-top", top);
  $("second-list").hidden = !hasTwo;
  $("compare").hidden = hasTwo;
  setText($("list-title"), hasTwo ? "List A" : "List");
  for (const [side, view] of Object.entries(views)) view.show(state[side] ?? [], top);
}

/** Show the numbers of a state from the server. */
function showAnswer(html, state, { only }) {
  const answer = parse(html);
  for (const list of answer.querySelectorAll("[data-side]")) views[list.dataset.side].showFacts(list.children);
  measures.show(answer.querySelectorAll(".measure"), only);
  for (const part of answer.querySelectorAll("[id]")) morph($(part.id), part);
  $("relevant").placeholder = answer.dataset.relevant;
  Object.assign(view, { query: answer.dataset.query, state, complete: only ? view.complete : state });
  const name = arrange(state);
  clearTimeout(undoHistory.timer);
  undoHistory.timer = setTimeout(pushHistory, HISTORY_DELAY);
  clearTimeout(view.timer);
  if (name) view.timer = setTimeout(() => requestCalculation(writeState(state), name), CALCULATION_DELAY);
  document.dispatchEvent(new CustomEvent("evaluated"));
}

/** Arrange the measures of a state, and return the name of the focused one. */
function arrange({ settings }) {
  return measures.arrange(settings.pin.split(","), settings.focus);
}

/** Request and show the calculation of the focused measure; open steps stay open. */
const requestCalculation = (query, name) => calculations.run(async (signal) => {
  const request = `${query}&measure=${encodeURIComponent(name)}`;
  if (query !== session.query || request === view.calculationRequest) return;
  try {
    const calculation = parse(await requestJson(`${API}/calculation?${request}`, { signal }));
    if (query !== session.query) return; // a newer state has its own request
    calculation.querySelector(".sheets").open = $("calculation").querySelector(".sheets")?.open;
    $("calculation").replaceChildren(calculation);
    view.calculationRequest = request;
  } catch (error) {
    if (error.name !== "AbortError") setText($("calculation"), error.message);
  }
});

/** Show the error of a field; an empty text removes it. */
const showFieldError = (field, error) => {
  updateAttribute(field, "aria-invalid", error ? "true" : null);
  setText($(`${field.name}-error`), error);
};

/** Fill the fields with the settings of the state. */
const fillSettings = () => {
  for (const name of SETTINGS) {
    const field = $("settings").elements[name];
    if (!field?.dataset || document.activeElement === field) continue;
    field.value = session.state.settings[name] || field.dataset.default || "";
    if (field.dataset.rule) showFieldError(field, "");
  }
};

/** Apply a setting while it is typed; an invalid one only shows an error at its field. */
const applySetting = ({ target: field }) => {
  const { name } = field, { rule, default: defaultValue } = field.dataset;
  if (!SETTINGS.includes(name)) return;
  const current = session.state.settings[name] || defaultValue;
  const error = field.checkValidity() ? "" : `${rule}.${current ? ` The scores still use ${current}.` : ""}`;
  if (rule) showFieldError(field, error);
  if (!error) session.set(name, field.value.trim() === defaultValue ? "" : field.value.trim());
};

const ON_CLICK = {
  undo,
  redo,
  reset: async () => {
    const { run = "", topic = "", other_run = "" } = session.state.settings;
    try {
      const first = await requestJson(`${API}?${new URLSearchParams({ run, topic, other_run })}`);
      applyState(read(first.query), "Reset.");
    } catch (error) {
      showProblem(error);
    }
  },
  compare: () => {
    session.apply(withCopy(session.state), { message: "The second list is a copy of the first list." });
    views.other.focus(0);
  },
  "remove-second": () => {
    session.apply({ ...session.state, other: null }, { message: "The second list was removed." });
    $("compare").focus();
  },
  swap: () => session.apply(swapped(session.state, views.other.names), { message: "A and B were swapped." }),
  "separate-grades": () => session.apply(withoutNames(session.state), {
    message: "B is now graded separately. Each document of B is matched with a document of A that has the same grade. If A has no such document, the document of B is a new document.",
  }),
};

const start = () => {
  view.state = view.complete = session.state;
  view.calculationRequest = `${session.query}&measure=${encodeURIComponent($("calculation").firstElementChild?.dataset.name)}`;
  undoHistory.states[undoHistory.index] = session.state;
  history.replaceState({ index: undoHistory.index, query: view.query }, "");
  fillSettings();
  showState(session);
  arrange(session.state);
  for (const [id, act] of Object.entries(ON_CLICK)) $(id).addEventListener("click", act);
  $("settings").addEventListener("input", applySetting);
  $("settings").addEventListener("submit", (event) => event.preventDefault());
  const search = $("find-measure");
  $("filter").addEventListener("input", () => measures.find($("filter").value, (text, first) => {
    setText($("search-status"), text);
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
  connectPasteDialog(() => session.query, (query, message, into) => {
    applyState(read(query), message);
    views[into].focus(0);
  });
  document.documentElement.dataset.ready = "yes";
};

start();
