/* The state of the evaluator, which is also its address. States are never changed: each function gives a new one.

   state = { list: [item], other: [item] or null, settings: { cutoff, gain, ... } as texts, left out where not given }
   item = { key, doc, grade }: `key` tells rows apart whatever they are called, `grade` is null for unjudged; in the second
   list `doc` may be empty: then the row has a grade of its own, and judged says which document it is taken for */

export const SETTINGS = [
  "missing", "relevant", "cutoff", "gain", "discount", "base", "rel", "max", "n", "pin", "focus", "run", "topic", "other_run",
];
export const SIDES = ["list", "other"];
export const LONGEST = 200;

let keys = 0;

/** Make a row of a list. */
export const item = (doc, grade) => ({ key: ++keys, doc, grade });

/** Read a list as addresses write it: `3,0:name,-`; rows without a name are called by their place, if `named`. */
export const readList = (text, named = true) =>
  text === "" ? [] : text.split(",").map((part, at) => {
    const colon = part.indexOf(":");
    const grade = colon < 0 ? part : part.slice(0, colon);
    const doc = colon < 0 ? (named ? `d${at + 1}` : "") : decodeURIComponent(part.slice(colon + 1));
    return item(doc, grade === "-" ? null : Number(grade));
  });

/** Write a list as addresses have it; a document that is called by its place needs no name, unless it is `beside` another. */
export const writeList = (items, beside = false) =>
  items.map(({ doc, grade }, at) => {
    const shown = grade === null ? "-" : String(grade);
    return (beside ? doc === "" : doc === `d${at + 1}`) ? shown : `${shown}:${encodeURIComponent(doc)}`;
  }).join(",");

/** Read a state from the query of an address. */
export const readState = (query) => {
  const given = new URLSearchParams(query);
  const settings = {};
  for (const name of SETTINGS) if (given.get(name)) settings[name] = given.get(name);
  const other = given.has("other") ? readList(given.get("other"), false) : null;
  return { list: readList(given.get("list") ?? ""), other, settings };
};

/** Write the query that asks for a state, and for how it moved since `before`, a list. */
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

/** Whether rows are of one document; a row without a name is only itself. */
const isSame = (one, other) => (one.doc ? one.doc === other.doc : one === other);

/** Grade a document: it has one grade, in whatever list it stands. */
export const graded = (state, side, at, grade) =>
  eachList(state, (items) => items.map((one) => (isSame(one, state[side][at]) ? { ...one, grade } : one)));

/** Call a document otherwise, in whatever list it stands; a name that is known brings its grade along. */
export const renamed = (state, side, at, doc) => {
  const old = state[side][at];
  const known = SIDES.flatMap((name) => state[name] ?? []).find((one) => one.doc === doc);
  const change = known ? { doc, grade: known.grade } : { doc };
  return eachList(state, (items) =>
    items.map((one) => (isSame(one, old) && (!known || items === state[side]) ? { ...one, ...change } : one)));
};

/** Put a row at another place of its list. */
export const moved = (state, side, from, to) => {
  const items = [...state[side]];
  items.splice(to, 0, ...items.splice(from, 1));
  return { ...state, [side]: items };
};

/** Take a row out. */
export const removed = (state, side, at) => ({ ...state, [side]: state[side].filter((_, place) => place !== at) });

/** Put a document with a new name at a place. */
export const added = (state, side, at) => {
  if (side === "other" && state.other.some(({ doc }) => doc === ""))
    return { ...state, other: state.other.toSpliced(at, 0, item("", 0)) };
  const taken = new Set(SIDES.flatMap((name) => (state[name] ?? []).map((one) => one.doc)));
  let number = state[side].length + 1;
  while (taken.has(`d${number}`)) number += 1;
  return { ...state, [side]: state[side].toSpliced(at, 0, item(`d${number}`, 0)) };
};

/** Give the first list a second one beside it, as it stands. */
export const doubled = (state) => ({ ...state, other: state.list.map((one) => item(one.doc, one.grade)) });

/** Take the names from the second list, so that each of its rows has a grade of its own. */
export const apart = (state) => ({ ...state, other: state.other.map((one) => ({ ...one, doc: "" })) });

/** Put each list in the place of the other, its documents called by `names`; the second has no names if it had none. */
export const swapped = (state, names) => {
  const list = state.other.map(({ grade }, at) => item(names[at], grade));
  const next = { ...state, list, other: state.list };
  return state.other.some(({ doc }) => doc === "") ? apart(next) : next;
};

/** Change one setting; an empty text takes it out. */
export const set = (state, name, text) => ({ ...state, settings: { ...state.settings, [name]: text } });

/** The highest grade for which rows have a button of their own. */
export const topGrade = (state) => {
  const grades = SIDES.flatMap((name) => (state[name] ?? []).map((one) => one.grade ?? 0));
  return Math.max(3, ...grades.filter((one) => one <= 7).map(Math.ceil));
};
