/* Judging page: shows the next task without waiting, sends labels in order, and stores them until the server confirms. */
import { highlightMatches, requestJson } from "./elements.js";

const byId = (id) => document.getElementById(id);
const batch = JSON.parse(byId("batch").textContent);
const form = byId("answer");
const note = byId("note");
const buttons = [...form.querySelectorAll("button[name=answer]")];
const STORAGE_PREFIX = `judged-label:${batch.store}:${batch.judge}:`;
const MIN_QUEUE = 8; // tasks; with fewer, load more
const BATCH = 20; // labels per request
const TIMEOUT = 10_000; // milliseconds per request

let queue = batch.tasks;
let current = null;
let { done, assigned } = batch;
const answerHistory = []; // answers on this page, for undo
const answeredTasks = new Set();

/* Labels that the server has not confirmed, on this page and in localStorage, so that a reload loses none. */
const readPending = () => {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(STORAGE_PREFIX))
      .sort()
      .map((key) => ({ key, label: JSON.parse(localStorage.getItem(key)) }));
  } catch {
    return [];
  }
};
const pending = readPending();
let labelCount = pending.length;
let keyNumber = 0;
let changes = 0;
let problem = "";

const addPending = (label) => {
  const key = `${STORAGE_PREFIX}${String(Date.now()).padStart(15, "0")}-${String(keyNumber++).padStart(6, "0")}`;
  pending.push({ key, label });
  changes += 1;
  try {
    localStorage.setItem(key, JSON.stringify(label));
  } catch {
    /* no localStorage: the label is pending while the page is open */
  }
  showState();
  send();
};
const removePending = (labels) => {
  for (const { key } of labels) {
    pending.splice(pending.findIndex((stored) => stored.key === key), 1);
    try {
      localStorage.removeItem(key);
    } catch {
      /* no localStorage */
    }
  }
};

/* Show the saving state. Screen readers announce only problems and requested messages. */
const showState = (text = "") => {
  const unsaved = problem && `${pending.length} ${pending.length === 1 ? "label" : "labels"} not saved yet: ${problem}`;
  const state = byId("state");
  state.classList.toggle("unsaved", Boolean(problem));
  state.textContent = unsaved || text || (pending.length ? "saving" : labelCount ? "all labels saved" : "");
  const announcement = problem || text;
  if (byId("live-status").textContent !== announcement) byId("live-status").textContent = announcement;
};

const callApi = (path, body) => requestJson(path, { body, signal: AbortSignal.timeout(TIMEOUT) });

let sending = false;
let retryNow = () => {};
const send = async () => {
  if (sending) return;
  sending = true;
  let size = BATCH;
  let wait = 500;
  while (pending.length) {
    const labels = pending.slice(0, size);
    try {
      await callApi("/api/v1/judging", { judge: batch.judge, labels: labels.map(({ label }) => label) });
      removePending(labels);
      problem = "";
      [size, wait] = [BATCH, 500];
    } catch (error) {
      const refused = [400, 413, 422].includes(error.status);
      if (refused && labels.length > 1) {
        size = 1; // find the refused label
        continue;
      }
      if (refused) {
        removePending(labels);
        problem = "";
        showState(`The server rejected a label: ${error.message}`);
        continue;
      }
      problem = error.status === 401 ? "open your link again" : "the server cannot be reached, but you can continue";
      showState();
      await new Promise((resolve) => {
        retryNow = resolve;
        setTimeout(resolve, wait);
      });
      wait = Math.min(wait * 2, 5000);
    }
  }
  sending = false;
  showState();
  fill();
};
addEventListener("online", () => retryNow());
addEventListener("beforeunload", (event) => {
  if (pending.length) event.preventDefault();
});

let filling = false;
const fill = async () => {
  if (filling || queue.length >= MIN_QUEUE) return;
  filling = true;
  try {
    const before = pending.length ? -1 : changes; // counts of the server are outdated after a change
    const limit = Math.min(200, BATCH + queue.length + pending.length + 1);
    const query = new URLSearchParams({ judge: batch.judge, limit });
    const result = await callApi(`/api/v1/judging?${query}`);
    const queued = new Set([...queue, ...(current ? [current] : [])].map((task) => task.task));
    queue.push(...result.tasks.filter((task) => !queued.has(task.task) && !answeredTasks.has(task.task)));
    if (before === changes) ({ done, assigned } = result);
  } catch {
    setTimeout(fill, 2000);
  }
  filling = false;
  if (current) showProgress();
  else showNext();
};

/* Time per label: from showing a task to its answer, without time while the page is hidden. */
let startTime = 0;
let earlierSeconds = 0;
const recentSeconds = [];
const elapsedSeconds = () => earlierSeconds + (startTime ? (performance.now() - startTime) / 1000 : 0);
const startClock = () => {
  startTime = document.hidden ? 0 : performance.now();
};
document.addEventListener("visibilitychange", () => {
  earlierSeconds = elapsedSeconds();
  startClock();
});

const narrow = matchMedia("(max-width: 56rem)");
let usedPointer = false;
document.addEventListener("pointerdown", () => (usedPointer = true), true);
document.addEventListener("keydown", () => (usedPointer = false), true);

const formatNumber = (value) => value.toLocaleString("en");
const showProgress = () => {
  byId("done").textContent = formatNumber(done);
  byId("assigned").textContent = formatNumber(assigned);
  const bar = document.querySelector("progress");
  bar.max = assigned || 1;
  bar.value = done;
  const median = [...recentSeconds].sort((a, b) => a - b)[recentSeconds.length >> 1];
  byId("pace").textContent = recentSeconds.length ? ` · ${median < 9.95 ? median.toFixed(1) : Math.round(median)} s per label` : "";
  for (const button of buttons) if (button.value === "undo") button.disabled = !done && !answerHistory.length;
};

/** Show the next task, or an undone one with its previous grade and note. */
const showNext = (previous = null) => {
  current = queue.shift() ?? null;
  byId("judging").classList.toggle("finished", !current);
  for (const element of [byId("grades"), document.querySelector(".document"), note.parentElement, ...buttons])
    element.hidden = !current && element.value !== "undo";
  for (const button of buttons) button.toggleAttribute("data-previous", previous !== null && Number(button.value) === previous.grade);
  note.value = previous?.note ?? "";
  byId("query").textContent = current ? current.query : pending.length ? "Waiting for the server" : "All tasks are done";
  for (const name of ["description", "narrative", "doc_id"]) {
    byId(name).textContent = current?.[name] ?? "";
    byId(name).hidden = !current?.[name];
  }
  for (const name of ["title", "text"]) byId(name).replaceChildren(...highlightMatches(current?.[name] ?? []));
  form.elements.task.value = current?.task ?? 0;
  showProgress();
  if (narrow.matches && labelCount) byId("judging").scrollIntoView();
  else scrollTo(0, 0);
  // Keyboard users keep the focus on a button. After a click, the space bar must scroll, not answer again.
  if (usedPointer || !buttons.includes(document.activeElement) || document.activeElement.hidden)
    byId("query").focus({ preventScroll: true });
  earlierSeconds = 0;
  startClock();
};

const undo = async () => {
  let undone = answerHistory.pop();
  if (!undone) {
    if (pending.length) return showState("wait until all labels are saved");
    try {
      undone = (await callApi("/api/v1/judging/undo", { judge: batch.judge })).undone;
      changes += 1;
    } catch (error) {
      return showState(`Undo failed: ${error.message}`);
    }
    if (!undone) return showState("there is no label to undo");
  } else {
    addPending({ task: undone.task.task, grade: null, valid: false, note: "", seconds: null });
  }
  if (current) queue.unshift(current);
  queue = [undone.task, ...queue.filter((task) => task.task !== undone.task.task)];
  answeredTasks.delete(undone.task.task);
  done -= undone.isPostponed ? 0 : 1;
  showNext(undone);
  showState("label undone");
};

const answer = (value) => {
  if (value === "undo") return undo();
  if (!current) return;
  const isPostponed = value === "later";
  const grade = isPostponed || value === "skip" ? null : Number(value);
  const noteText = note.value.toWellFormed?.() ?? note.value;
  const label = { task: current.task, grade, valid: !isPostponed, note: noteText, seconds: Math.round(elapsedSeconds() * 1000) / 1000 };
  answerHistory.push({ task: current, grade, note: noteText, isPostponed });
  if (isPostponed) {
    if (queue.length < MIN_QUEUE) queue.push(current);
  } else {
    answeredTasks.add(current.task);
    recentSeconds.push(label.seconds);
    if (recentSeconds.length > 50) recentSeconds.shift();
    done += 1;
  }
  labelCount += 1;
  showNext();
  addPending(label);
};

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter) answer(event.submitter.value);
});

const keySetting = byId("keys");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (event.target === note) {
    if (event.key === "Escape") byId("query").focus();
    return;
  }
  if (!keySetting.checked || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  const button = buttons.find((candidate) => candidate.dataset.key === event.key.toLowerCase() && event.key && !candidate.hidden && !candidate.disabled);
  if (event.key.toLowerCase() === "n" && current) note.focus();
  else if (button) answer(button.value);
  else return;
  event.preventDefault();
});

keySetting.closest("p").hidden = byId("escape-hint").hidden = false;
try {
  keySetting.checked = localStorage.getItem("judged-keys") !== "off";
  keySetting.addEventListener("change", () => localStorage.setItem("judged-keys", keySetting.checked ? "on" : "off"));
} catch {
  /* no localStorage: the setting applies to this page only */
}

/* Tasks with pending labels of an earlier page are answered. */
for (const { label } of pending) if (label.valid) answeredTasks.add(label.task);
queue = queue.filter((task) => !answeredTasks.has(task.task));
done += answeredTasks.size;
showNext();
send();
byId("judging").dataset.ready = "";
