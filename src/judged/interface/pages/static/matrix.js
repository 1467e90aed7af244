/* Draw a rectangle in the matrix chart to list its topics below.
   The server selects the topics: the rectangle is part of the URL, and parts of the response replace parts of the page. */
const TOPICS = "topics";
const BRUSH = "brush";
const SIDES = ["x0", "x1", "y0", "y1"];
const DIGITS = 4; // of a side in the URL; finer than a pixel

const links = JSON.parse(document.getElementById("links").textContent);
const views = new Map();
let rows = new Map(); // newer than the rows in the spec of the chart
let pendingRequest = null;
let clickHandled = false; // a click opened a link, so it is not an empty rectangle

/** The rectangle in a URL query as {x: [from, to], y: [from, to]}, or null. */
const parseBox = (query) => {
  const bounds = SIDES.map((name) => (query.get(name) ? Number(query.get(name)) : null));
  if (bounds.every((bound) => bound === null)) return null;
  return { x: bounds.slice(0, 2), y: bounds.slice(2) };
};

/** The rows of the charts of a page, by chart name. */
const rowsOf = (page) =>
  new Map(
    [...page.querySelectorAll("script[data-spec]")].map((script) => [
      script.dataset.spec,
      JSON.parse(script.textContent).layer.find((layer) => layer.data?.name === TOPICS).data.values,
    ]),
  );

/** Draw the rectangle of the URL in the chart, or remove it. */
const drawBox = (view, box) => {
  for (const [axis, size] of [["x", view.width()], ["y", view.height()]]) {
    const scale = view.scale(axis);
    const edges = axis === "x" ? [0, size] : [size, 0];
    const pixels = box ? box[axis].map((bound, i) => Math.min(size, Math.max(0, bound === null ? edges[i] : scale(bound)))) : [0, 0];
    view.signal(`${BRUSH}_${axis}`, pixels);
  }
};

/** Update the rows of a chart; the chart of the run also gets the rectangle of the URL. */
const fill = (name, view) => {
  view.data(TOPICS, rows.get(name));
  if (name === "run") drawBox(view, parseBox(new URLSearchParams(location.search)));
  view.run();
};

/** Request a selection and update the page in place. */
const show = async (url, { push = true, focus = false } = {}) => {
  pendingRequest?.abort();
  pendingRequest = new AbortController();
  const selected = document.getElementById("selected");
  selected.setAttribute("aria-busy", "true");
  let page;
  try {
    const response = await fetch(url, { signal: pendingRequest.signal });
    if (!response.ok) return location.assign(url);
    page = new DOMParser().parseFromString(await response.text(), "text/html");
  } catch (error) {
    if (error.name !== "AbortError") location.assign(url);
    return undefined;
  }
  if (push) history.pushState(null, "", url);
  for (const id of ["selected", "topic-selection"]) {
    document.getElementById(id).replaceWith(document.adoptNode(page.getElementById(id)));
  }
  document.getElementById("count").textContent = page.getElementById("count").textContent;
  document.getElementById("json-link").href = page.getElementById("json-link").getAttribute("href");
  rows = rowsOf(page);
  for (const [name, view] of views) fill(name, view);
  if (focus) document.getElementById("selected-title").focus();
  return undefined;
};

/** The URL of a rectangle. Other parameters stay, except for page and quadrant. */
const boxUrl = (box) => {
  const query = new URLSearchParams(location.search);
  for (const name of [...SIDES, "page", "quadrant"]) query.delete(name);
  if (box) {
    const bounds = [...box.x, ...box.y];
    SIDES.forEach((name, i) => query.set(name, String(bounds[i])));
  }
  return `${location.pathname}?${query}`;
};

const roundAndSort = (pair) => pair.map((bound) => Number(bound.toFixed(DIGITS))).sort((first, second) => first - second);

/** Track the rectangle while it is drawn, and request its topics when the pointer is released. */
const listen = (view, container) => {
  let box = null;
  let pressed = false;
  let moved = false;
  view.addSignalListener(BRUSH, (name, value) => {
    box = value.x_score && value.y_score ? { x: roundAndSort(value.x_score), y: roundAndSort(value.y_score) } : null;
    moved ||= pressed;
  });
  const release = () => {
    removeEventListener("pointerup", release);
    setTimeout(() => {
      pressed = false;
      const hasNoBox = !parseBox(new URLSearchParams(location.search));
      if (moved && !clickHandled && (box || !hasNoBox)) show(boxUrl(box));
    });
  };
  const press = () => {
    pressed = true;
    moved = false;
    clickHandled = false;
    addEventListener("pointerup", release);
  };
  container.firstElementChild.addEventListener("pointerdown", press, true);
};

/** Open the topic of a dot, select the topics of a dot of several, or filter by a slice. */
const openMark = (event, mark) => {
  const datum = mark?.datum;
  if (!datum) return;
  clickHandled = true;
  if (datum.query_id) location.assign(`${links.topic}&${new URLSearchParams({ topic: datum.query_id })}`);
  else if (datum.label && Object.hasOwn(links.slices, datum.label)) location.assign(links.slices[datum.label]);
  else if (datum.from) show(boxUrl({ x: [datum.from[0], datum.to[0]], y: [datum.from[1], datum.to[1]] }));
  else clickHandled = false;
};

document.addEventListener("chart-rendered", ({ target, detail: { view } }) => {
  const name = target.dataset.chart;
  views.set(name, view);
  if (rows.has(name)) fill(name, view);
  if (name === "run") listen(view, target);
  view.addEventListener("click", openMark);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("#selected a[href^='?'], #topic-selection a[href^='?']");
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
