/* State of the evaluator, which is also its URL. States are immutable: each function returns a new one.

   state = { list: [item], other: [item] or null, settings: { cutoff, gain, ... } as strings, without defaults }
   item = { key, doc, grade }: `key` identifies a row independently of its name, `grade` is null if unjudged. In the second
   list, `doc` may be empty: then the row has a separate grade, and the server assigns a document to it */

export const SETTINGS = [
  "missing", "relevant", "cutoff", "gain", "discount", "base", "rel", "max", "n", "pin", "focus", "run", "topic", "other_run",
];
export const SIDES = ["list", "other"];
export const MAX_LENGTH = 200;

let lastKey = 0;

/** Create a row of a list. */
export const item = (doc, grade) => ({ key: ++lastKey, doc, grade });

/** Parse a list from a URL: `3,0:name,-`. With `useDefaultNames`, rows without a name are named by rank. */
export const readList = (text, useDefaultNames = true) =>
  text === "" ? [] : text.split(",").map((part, index) => {
    const colon = part.indexOf(":");
    const grade = colon < 0 ? part : part.slice(0, colon);
    const doc = colon < 0 ? (useDefaultNames ? `d${index + 1}` : "") : decodeURIComponent(part.slice(colon + 1));
    return item(doc, grade === "-" ? null : Number(grade));
  });

/** Format a list for a URL. Names by rank are omitted, except in the second list. */
export const writeList = (items, isSecond = false) =>
  items.map(({ doc, grade }, index) => {
    const gradeText = grade === null ? "-" : String(grade);
    return (isSecond ? doc === "" : doc === `d${index + 1}`) ? gradeText : `${gradeText}:${encodeURIComponent(doc)}`;
  }).join(",");

/** Parse a state from the query of a URL. */
export const readState = (query) => {
  const params = new URLSearchParams(query);
  const settings = {};
  for (const name of SETTINGS) if (params.get(name)) settings[name] = params.get(name);
  const other = params.has("other") ? readList(params.get("other"), false) : null;
  return { list: readList(params.get("list") ?? ""), other, settings };
};

/** Format the query for a state, and for its change since `before`, a list. */
export const writeState = (state, before = null) => {
  const pairs = [["list", writeList(state.list)]];
  if (state.other) pairs.push(["other", writeList(state.other, true)]);
  if (before) pairs.push(["before", writeList(before)]);
  for (const name of SETTINGS) if (state.settings[name]) pairs.push([name, state.settings[name]]);
  return new URLSearchParams(pairs).toString();
};

const eachList = (state, change) => ({
  ...state, list: change(state.list), other: state.other && change(state.other),
});

/** Whether two rows have the same document; a row without a name equals only itself. */
const isSame = (row, other) => (row.doc ? row.doc === other.doc : row === other);

/** Grade a document in both lists. */
export const graded = (state, side, index, grade) =>
  eachList(state, (items) => items.map((row) => (isSame(row, state[side][index]) ? { ...row, grade } : row)));

/** Rename a document in both lists; an existing name also sets its grade. */
export const renamed = (state, side, index, doc) => {
  const oldItem = state[side][index];
  const sameName = SIDES.flatMap((name) => state[name] ?? []).find((row) => row.doc === doc);
  const change = sameName ? { doc, grade: sameName.grade } : { doc };
  return eachList(state, (items) =>
    items.map((row) => (isSame(row, oldItem) && (!sameName || items === state[side]) ? { ...row, ...change } : row)));
};

/** Move a row within its list. */
export const moved = (state, side, from, to) => {
  const items = [...state[side]];
  items.splice(to, 0, ...items.splice(from, 1));
  return { ...state, [side]: items };
};

/** Remove a row. */
export const removed = (state, side, index) => ({ ...state, [side]: state[side].filter((_, i) => i !== index) });

/** Insert a document with a new name. */
export const added = (state, side, index) => {
  if (side === "other" && state.other.some(({ doc }) => doc === ""))
    return { ...state, other: state.other.toSpliced(index, 0, item("", 0)) };
  const usedNames = new Set(SIDES.flatMap((name) => (state[name] ?? []).map((row) => row.doc)));
  let number = state[side].length + 1;
  while (usedNames.has(`d${number}`)) number += 1;
  return { ...state, [side]: state[side].toSpliced(index, 0, item(`d${number}`, 0)) };
};

/** Add a copy of the first list as second list. */
export const withCopy = (state) => ({ ...state, other: state.list.map((row) => item(row.doc, row.grade)) });

/** Remove the names of the second list, so that its rows have separate grades. */
export const withoutNames = (state) => ({ ...state, other: state.other.map((row) => ({ ...row, doc: "" })) });

/** Swap the lists; the documents of the new first list get `names`. The second has no names if it had none. */
export const swapped = (state, names) => {
  const list = state.other.map(({ grade }, index) => item(names[index], grade));
  const next = { ...state, list, other: state.list };
  return state.other.some(({ doc }) => doc === "") ? withoutNames(next) : next;
};

/** Change one setting; an empty text removes it. */
export const set = (state, name, text) => ({ ...state, settings: { ...state.settings, [name]: text } });

/** The highest grade that has a button in each row. */
export const topGrade = (state) => {
  const grades = SIDES.flatMap((name) => (state[name] ?? []).map((row) => row.grade ?? 0));
  return Math.max(3, ...grades.filter((grade) => grade <= 7).map(Math.ceil));
};
