/* Draws a chart of Vega-Lite into a place of the page, as wide as there is room; `vegaEmbed` is there already. */
/* No eval and no style elements, which a strict policy of the page would refuse: charts.css has what is needed. */
const embedding = {
  renderer: "svg", actions: false, logLevel: 1, ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true },
};
const widest = 760;

/* The expression that cuts a long name in its middle, for less room. */
const shorter = (expression) => {
  const [, text] = expression.match(/^length\(([\w.]+)\)/);
  return `length(${text}) > 20 && indexof(${text}, ' ') < 0 ? slice(${text}, 0, 11) + '…' + slice(${text}, -8) : ${text}`;
};

/* On a narrow page names take less room, and legends stand below. */
const narrow = (value) => {
  if (Array.isArray(value)) return value.map(narrow);
  if (value === null || typeof value !== "object") return value;
  const made = {};
  for (const [key, part] of Object.entries(value)) {
    if (key === "values" || key === "datasets") made[key] = part;
    else if (key === "columns" && value.concat) made[key] = 1;
    else if (key === "labelLimit" && part > 140) made[key] = 140;
    else if (typeof part === "string" && part.startsWith("length(datum.")) made[key] = shorter(part);
    else if (key === "legend" && part) made[key] = { ...narrow(part), ...below };
    else made[key] = narrow(part);
  }
  return made;
};
const below = { orient: "bottom", direction: "vertical", columns: 1, labelLimit: 220 };

/* The width of a chart is that of its plot; axes and names come beside it, and how much they take shows afterwards. */
export const draw = async (place, spec, again = false) => {
  const room = place.parentElement.clientWidth;
  if (!room || (!again && place.dataset.room === String(room))) return null;
  place.dataset.room = String(room);
  const small = room < 500;
  const made = { ...(small ? narrow(spec) : spec) };
  made.config = { ...made.config, background: "transparent", padding: 2 };
  const bends = typeof spec.width === "number";
  if (bends) made.width = Math.max(120, Math.min(widest, room) - 90);
  if (small) {
    made.config.axis = { ...made.config.axis, labelLimit: 140 };
    made.config.legend = { ...made.config.legend, ...below };
  }
  let shown = await vegaEmbed(place, made, embedding);
  for (let tries = 0; tries < 2 && bends; tries += 1) {
    const svg = place.querySelector("svg");
    const over = svg.getAttribute("width") - Math.min(room, widest + 60);
    if (over <= 0 || made.width <= 120) break;
    shown.finalize();
    made.width = Math.max(120, made.width - Math.ceil(over));
    shown = await vegaEmbed(place, made, embedding);
  }
  const svg = place.querySelector("svg");
  if (svg) svg.setAttribute("aria-hidden", "true");
  return shown.view;
};
