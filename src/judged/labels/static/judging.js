/* Judging: the next task is there at once, answers are sent in order, and kept until the server has them. */
import { ask as asked, marked } from "./elements.js";

const byId = (id) => document.getElementById(id);
const batch = JSON.parse(byId("batch").textContent);
const form = byId("answer");
const note = byId("note");
const buttons = [...form.querySelectorAll("button[name=answer]")];
const KEPT = `judged-label:${batch.store}:${batch.judge}:`;
const FEW = 8; // tasks that are left when more are asked for
const SENT = 20; // labels in one request
const PATIENCE = 10_000; // milliseconds for an answer

let queue = batch.tasks;
let current = null;
let { done, assigned } = batch;
const past = []; // what was answered here, for undo
const answered = new Set();

/* What the server does not have yet: in this page, and beside it in the browser, so that a reload loses nothing. */
const readKept = () => {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(KEPT))
      .sort()
      .map((key) => ({ key, label: JSON.parse(localStorage.getItem(key)) }));
  } catch {
    return [];
  }
};
const pending = readKept();
let given = pending.length;
let count = 0;
let changes = 0;
let problem = "";

const keep = (label) => {
  const key = `${KEPT}${String(Date.now()).padStart(15, "0")}-${String(count++).padStart(6, "0")}`;
  pending.push({ key, label });
  changes += 1;
  try {
    localStorage.setItem(key, JSON.stringify(label));
  } catch {
    /* it is kept as long as the page is open */
  }
  tell();
  send();
};
const forget = (items) => {
  for (const { key } of items) {
    pending.splice(pending.findIndex((item) => item.key === key), 1);
    try {
      localStorage.removeItem(key);
    } catch {
      /* it was never there */
    }
  }
};

/* What is saved is written each time; read aloud is trouble alone, and what was asked for. */
const tell = (text = "") => {
  const unsaved = problem && `${pending.length} not yet saved: ${problem}`;
  const state = byId("state");
  state.classList.toggle("unsaved", Boolean(problem));
  state.textContent = unsaved || text || (pending.length ? "saving" : given ? "all saved" : "");
  const aloud = problem || text;
  if (byId("aloud").textContent !== aloud) byId("aloud").textContent = aloud;
};

const ask = (path, body) => asked(path, { body, signal: AbortSignal.timeout(PATIENCE) });

let sending = false;
let wake = () => {};
const send = async () => {
  if (sending) return;
  sending = true;
  let size = SENT;
  let wait = 500;
  while (pending.length) {
    const items = pending.slice(0, size);
    try {
      await ask("/api/v1/judging", { judge: batch.judge, labels: items.map((item) => item.label) });
      forget(items);
      problem = "";
      [size, wait] = [SENT, 500];
    } catch (error) {
      const refused = [400, 413, 422].includes(error.status);
      if (refused && items.length > 1) {
        size = 1; // to find which one it is
        continue;
      }
      if (refused) {
        forget(items);
        problem = "";
        tell(`a label was refused: ${error.message}`);
        continue;
      }
      problem = error.status === 401 ? "open your link again" : "the server is away, go on";
      tell();
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, wait);
      });
      wait = Math.min(wait * 2, 5000);
    }
  }
  sending = false;
  tell();
  fill();
};
addEventListener("online", () => wake());
addEventListener("beforeunload", (event) => {
  if (pending.length) event.preventDefault();
});

let filling = false;
const fill = async () => {
  if (filling || queue.length >= FEW) return;
  filling = true;
  try {
    const before = pending.length ? -1 : changes; // what the server says is old where something happened meanwhile
    const limit = Math.min(200, SENT + queue.length + pending.length + 1);
    const query = new URLSearchParams({ judge: batch.judge, limit });
    const found = await ask(`/api/v1/judging?${query}`);
    const here = new Set([...queue, ...(current ? [current] : [])].map((one) => one.task));
    queue.push(...found.tasks.filter((one) => !here.has(one.task) && !answered.has(one.task)));
    if (before === changes) ({ done, assigned } = found);
  } catch {
    setTimeout(fill, 2000);
  }
  filling = false;
  if (current) progress();
  else next();
};

/* Time: from when a task is shown until it is answered, without what passes while the page is hidden. */
let begun = 0;
let spent = 0;
const ran = [];
const clock = () => spent + (begun ? (performance.now() - begun) / 1000 : 0);
const run = () => {
  begun = document.hidden ? 0 : performance.now();
};
document.addEventListener("visibilitychange", () => {
  spent = clock();
  run();
});

const narrow = matchMedia("(max-width: 56rem)");
let pointed = false;
document.addEventListener("pointerdown", () => (pointed = true), true);
document.addEventListener("keydown", () => (pointed = false), true);

const number = (value) => value.toLocaleString("en");
const progress = () => {
  byId("done").textContent = number(done);
  byId("assigned").textContent = number(assigned);
  const bar = document.querySelector("progress");
  bar.max = assigned || 1;
  bar.value = done;
  const middle = [...ran].sort((one, other) => one - other)[ran.length >> 1];
  byId("pace").textContent = ran.length ? ` · ${middle < 9.95 ? middle.toFixed(1) : Math.round(middle)} s a label` : "";
  for (const one of buttons) if (one.value === "undo") one.disabled = !done && !past.length;
};

/** Show the next task; or one that was taken back, with what was said of it. */
const next = (before = null) => {
  current = queue.shift() ?? null;
  byId("judging").classList.toggle("finished", !current);
  for (const one of [byId("grades"), document.querySelector(".document"), note.parentElement, ...buttons])
    one.hidden = !current && one.value !== "undo";
  for (const one of buttons) one.toggleAttribute("data-before", before !== null && Number(one.value) === before.grade);
  note.value = before?.note ?? "";
  byId("query").textContent = current ? current.query : pending.length ? "Waiting for the server" : "Nothing is left to judge";
  for (const name of ["description", "narrative", "doc_id"]) {
    byId(name).textContent = current?.[name] ?? "";
    byId(name).hidden = !current?.[name];
  }
  for (const name of ["title", "text"]) byId(name).replaceChildren(...marked(current?.[name] ?? []));
  form.elements.task.value = current?.task ?? 0;
  progress();
  if (narrow.matches && given) byId("judging").scrollIntoView();
  else scrollTo(0, 0);
  // Who goes from button to button by keys stays there; after a click the space bar must scroll, and not answer again.
  if (pointed || !buttons.includes(document.activeElement) || document.activeElement.hidden)
    byId("query").focus({ preventScroll: true });
  spent = 0;
  run();
};

const undo = async () => {
  let back = past.pop();
  if (!back) {
    if (pending.length) return tell("wait until all is saved");
    try {
      back = (await ask("/api/v1/judging/undo", { judge: batch.judge })).taken_back;
      changes += 1;
    } catch (error) {
      return tell(`nothing was taken back: ${error.message}`);
    }
    if (!back) return tell("there is nothing to take back");
  } else {
    keep({ task: back.task.task, grade: null, valid: false, note: "", seconds: null });
  }
  if (current) queue.unshift(current);
  queue = [back.task, ...queue.filter((one) => one.task !== back.task.task)];
  answered.delete(back.task.task);
  done -= back.later ? 0 : 1;
  next(back);
  tell("taken back");
};

const answer = (value) => {
  if (value === "undo") return undo();
  if (!current) return;
  const later = value === "later";
  const grade = later || value === "skip" ? null : Number(value);
  const said = note.value.toWellFormed?.() ?? note.value;
  const label = { task: current.task, grade, valid: !later, note: said, seconds: Math.round(clock() * 1000) / 1000 };
  past.push({ task: current, grade, note: said, later });
  if (later) {
    if (queue.length < FEW) queue.push(current);
  } else {
    answered.add(current.task);
    ran.push(label.seconds);
    if (ran.length > 50) ran.shift();
    done += 1;
  }
  given += 1;
  next();
  keep(label);
};

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter) answer(event.submitter.value);
});

const keys = byId("keys");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (event.target === note) {
    if (event.key === "Escape") byId("query").focus();
    return;
  }
  if (!keys.checked || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  const button = buttons.find((one) => one.dataset.key === event.key.toLowerCase() && event.key && !one.hidden && !one.disabled);
  if (event.key.toLowerCase() === "n" && current) note.focus();
  else if (button) answer(button.value);
  else return;
  event.preventDefault();
});

keys.closest("p").hidden = byId("leave").hidden = false;
try {
  keys.checked = localStorage.getItem("judged-keys") !== "off";
  keys.addEventListener("change", () => localStorage.setItem("judged-keys", keys.checked ? "on" : "off"));
} catch {
  /* it holds until the page is left */
}

/* What an earlier page could not send is answered already. */
for (const { label } of pending) if (label.valid) answered.add(label.task);
queue = queue.filter((one) => !answered.has(one.task));
done += answered.size;
next();
send();
byId("judging").dataset.ready = "";
