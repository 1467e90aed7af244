/* The page of the evaluator: wires the lists, the settings, the measures and the address together. */
import { mark, write } from "./dom.js";
import { ListView } from "./list.js";
import { MeasuresView } from "./measures.js";
import { pasting } from "./paste.js";
import { ask, Session } from "./session.js";
import { doubled, readState, SETTINGS } from "./state.js";

const API = "/api/v1/evaluator";
const PAUSE = 250; // browsers refuse to change the address more often than some hundred times a minute

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("evaluator-data").textContent);
const views = {};
const address = { query: data.query, timer: 0 };

/** Say something to those who listen, and write it above the measures. */
const say = (text) => write($("said"), text);

/** Write the state into the address: the query, and behind # what is open and looked for. */
const keepAddress = () => {
  address.timer ||= setTimeout(() => {
    address.timer = 0;
    const shown = new URLSearchParams();
    const open = measures.opened;
    if (open.length) shown.set("open", open.join(","));
    if ($("filter").value) shown.set("filter", $("filter").value);
    const hash = shown.toString();
    history.replaceState(null, "", `${location.pathname}?${address.query}${hash ? `#${hash}` : ""}`);
  }, PAUSE);
};

const measures = new MeasuresView($("measures"), {
  path: (name) => `${API}/measure?${session.query}&measure=${encodeURIComponent(name)}`,
  changed: keepAddress,
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

/** Show a state at once, before its numbers are known. */
function showState({ state, past, top }) {
  const two = state.other !== null;
  $("evaluator").classList.toggle("two", two);
  mark($("evaluator"), "data-top", top);
  $("second").hidden = !two;
  $("compare").hidden = two;
  write($("list-title"), two ? "List A" : "List");
  views.list.show(state.list, top);
  views.other.show(state.other ?? [], top);
  $("undo").disabled = past.length === 0;
  for (const side of ["list", "other"]) $(`${side}-empty`).hidden = state[side]?.length !== 0;
}

/** Show the numbers of a state. */
function showAnswer(answer, state, { only = "" } = {}) {
  const two = state.other !== null;
  for (const { list: side, returned, judged, relevant_found: relevant } of answer.counts) {
    views[side].tell(answer[side], two);
    write($(`${side}-counts`), `${returned} returned, ${judged} judged, ${relevant} relevant`);
  }
  measures.show(answer, only);
  $("relevant").placeholder = String(answer.state.relevant);
  if (!only) showNotes(answer.notes.map(({ text }) => text));
  if (!answer.state.source) document.querySelector(".source").replaceChildren();
  address.query = answer.query;
  for (const link of document.querySelectorAll("[data-export]"))
    link.href = `${API}/export?${answer.query}&format=${link.dataset.export}`;
  for (const link of document.querySelectorAll("[data-twin]")) link.href = `${API}?${answer.query}`;
  keepAddress();
  document.dispatchEvent(new CustomEvent("evaluated"));
}

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

/** Put the settings of the state into their fields. */
const fillSettings = () => {
  for (const name of SETTINGS) {
    const field = $("settings").elements[name];
    if (field && document.activeElement !== field) field.value = session.state.settings[name] || field.dataset.default || "";
  }
};

const takeSettings = (event) => {
  const { name, value } = event.target;
  if (!SETTINGS.includes(name) || !event.target.checkValidity()) return;
  session.set(name, value.trim() === event.target.dataset.default ? "" : value.trim());
};

const copyLink = async () => {
  const link = new URL(`?${address.query}`, location.href).href;
  try {
    await navigator.clipboard.writeText(link);
    say("The link is copied.");
  } catch {
    say(link); // only pages of this machine may write to the clipboard
  }
};

const ON_CLICK = {
  undo: () => session.undo() && fillSettings(),
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
  fillSettings();
  showState(session);
  showAnswer(data, session.state);
  for (const [id, act] of Object.entries(ON_CLICK)) $(id).addEventListener("click", act);
  for (const side of ["list", "other"]) toolbar(side);
  $("settings").addEventListener("input", takeSettings);
  $("settings").addEventListener("submit", (event) => event.preventDefault());
  $("filter").addEventListener("input", () => {
    write($("found"), $("filter").value ? `${measures.select($("filter").value)} found` : (measures.select(""), ""));
    keepAddress();
  });
  addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea, select");
    if (!typing && (event.ctrlKey || event.metaKey) && event.key === "z" && session.undo()) {
      event.preventDefault();
      fillSettings();
    }
  });
  pasting((items, text) => {
    const { cutoff, gain, discount, base, rel } = session.state.settings; // what was missing was so from the old list
    session.apply({ list: items, other: null, settings: { cutoff, gain, discount, base, rel } }, { said: text });
    fillSettings();
    views.list.focus(0);
  });
  const second = $("load")?.elements.other_run; // without scripts there is no way to leave a field out
  if (second) {
    addEventListener("pageshow", () => (second.disabled = false));
    second.form.addEventListener("submit", () => (second.disabled = second.value === ""));
  }
  const shown = new URLSearchParams(location.hash.slice(1));
  if (shown.get("filter")) {
    $("filter").value = shown.get("filter");
    measures.select(shown.get("filter"));
  }
  measures.open((shown.get("open") ?? "").split(","));
  document.documentElement.dataset.ready = "yes";
};

start();
