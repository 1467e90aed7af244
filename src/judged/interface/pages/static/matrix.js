/* Draw a rectangle in the chart of the matrix, and the topics in it are shown below.
   The server selects: the rectangle goes into the address, and what it answers takes the place of what was there. */
const TOPICS = "topics";
const BRUSH = "brush";
const SIDES = ["x0", "x1", "y0", "y1"];
const DIGITS = 4; // of a side in the address: finer than a pixel

const links = JSON.parse(document.getElementById("links").textContent);
const views = new Map();
let rows = new Map(); // newer than those that the chart was drawn with
let asking = null;
let followed = false; // a click led somewhere: it is not an empty rectangle

/** The rectangle of an address as {x: [from, to], y: [from, to]}; null without one. */
const boxOf = (query) => {
  const ends = SIDES.map((name) => (query.get(name) ? Number(query.get(name)) : null));
  if (ends.every((end) => end === null)) return null;
  return { x: ends.slice(0, 2), y: ends.slice(2) };
};

/** The dots of a chart that a page came with, by the name of the chart. */
const rowsOf = (page) =>
  new Map(
    [...page.querySelectorAll("script[data-spec]")].map((one) => [
      one.dataset.spec,
      JSON.parse(one.textContent).layer.find((layer) => layer.data?.name === TOPICS).data.values,
    ]),
  );

/** Draw the rectangle of the address into the chart, or take it away. */
const drawBox = (view, box) => {
  for (const [axis, size] of [["x", view.width()], ["y", view.height()]]) {
    const scale = view.scale(axis);
    const edges = axis === "x" ? [0, size] : [size, 0];
    const pixels = box ? box[axis].map((end, at) => Math.min(size, Math.max(0, end === null ? edges[at] : scale(end)))) : [0, 0];
    view.signal(`${BRUSH}_${axis}`, pixels);
  }
};

/** Give a chart the dots that came last, and that of the run the rectangle of the address. */
const fill = (name, view) => {
  view.data(TOPICS, rows.get(name));
  if (name === "run") drawBox(view, boxOf(new URLSearchParams(location.search)));
  view.run();
};

/** Ask for a selection, and show what is answered without leaving the page. */
const show = async (address, { push = true, focus = false } = {}) => {
  asking?.abort();
  asking = new AbortController();
  const selected = document.getElementById("selected");
  selected.setAttribute("aria-busy", "true");
  let page;
  try {
    const answer = await fetch(address, { signal: asking.signal });
    if (!answer.ok) return location.assign(address);
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
    return undefined;
  }
  if (push) history.pushState(null, "", address);
  for (const id of ["selected", "picking"]) {
    document.getElementById(id).replaceWith(document.adoptNode(page.getElementById(id)));
  }
  document.getElementById("count").textContent = page.getElementById("count").textContent;
  document.getElementById("twin").href = page.getElementById("twin").getAttribute("href");
  rows = rowsOf(page);
  for (const [name, view] of views) fill(name, view);
  if (focus) document.getElementById("selected-title").focus();
  return undefined;
};

/** The address of a rectangle: what else was asked stays, but for the page and the quadrant. */
const addressOf = (box) => {
  const query = new URLSearchParams(location.search);
  for (const name of [...SIDES, "page", "quadrant"]) query.delete(name);
  if (box) {
    const ends = [...box.x, ...box.y];
    SIDES.forEach((name, at) => query.set(name, String(ends[at])));
  }
  return `${location.pathname}?${query}`;
};

const rising = (pair) => pair.map((end) => Number(end.toFixed(DIGITS))).sort((one, two) => one - two);

/** Listen to the rectangle while it is drawn, and ask when the pointer is released. */
const listen = (view, place) => {
  let drawn = null;
  let held = false;
  let moved = false;
  view.addSignalListener(BRUSH, (name, value) => {
    drawn = value.across && value.up ? { x: rising(value.across), y: rising(value.up) } : null;
    moved ||= held;
  });
  const letGo = () => {
    removeEventListener("pointerup", letGo);
    setTimeout(() => {
      held = false;
      const none = !boxOf(new URLSearchParams(location.search));
      if (moved && !followed && (drawn || !none)) show(addressOf(drawn));
    });
  };
  const takeHold = () => {
    held = true;
    moved = false;
    followed = false;
    addEventListener("pointerup", letGo);
  };
  place.firstElementChild.addEventListener("pointerdown", takeHold, true);
};

/** Open the topic of a dot, select the topics of one that is several, or keep the topics of a slice. */
const follow = (event, item) => {
  const one = item?.datum;
  if (!one) return;
  followed = true;
  if (one.query_id) location.assign(`${links.topic}&${new URLSearchParams({ topic: one.query_id })}`);
  else if (one.label && Object.hasOwn(links.slices, one.label)) location.assign(links.slices[one.label]);
  else if (one.from) show(addressOf({ x: [one.from[0], one.to[0]], y: [one.from[1], one.to[1]] }));
  else followed = false;
};

document.addEventListener("drawn", ({ target, detail: { view } }) => {
  const name = target.dataset.chart;
  views.set(name, view);
  if (rows.has(name)) fill(name, view);
  if (name === "run") listen(view, target);
  view.addEventListener("click", follow);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("#selected a[href^='?'], #picking a[href^='?']");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  show(link.href, { focus: true });
});

document.addEventListener("submit", (event) => {
  if (event.target.id !== "box") return;
  event.preventDefault();
  const query = new URLSearchParams(new FormData(event.target));
  for (const name of SIDES) if (!query.get(name)) query.delete(name);
  show(`${location.pathname}?${query}`, { focus: true });
});

addEventListener("popstate", () => show(location.href, { push: false }));
