/* Draws a Vega-Lite chart in the available width; `vegaEmbed` must be loaded. */
/* No eval and no style elements, because a strict Content-Security-Policy forbids both; charts.css has the styles. */
const EMBED_OPTIONS = {
  renderer: "svg", actions: false, logLevel: 1, ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true },
};
const MAX_WIDTH = 760;

/* The expression that shortens a long name in its middle. */
const shorten = (expression) => {
  const [, text] = expression.match(/^length\(([\w.]+)\)/);
  return `length(${text}) > 20 && indexof(${text}, ' ') < 0 ? slice(${text}, 0, 11) + '…' + slice(${text}, -8) : ${text}`;
};

/* The spec for a narrow page: shorter names, and legends below the chart. */
const narrowSpec = (value) => {
  if (Array.isArray(value)) return value.map(narrowSpec);
  if (value === null || typeof value !== "object") return value;
  const adapted = {};
  for (const [key, child] of Object.entries(value)) {
    if (key === "values" || key === "datasets") adapted[key] = child;
    else if (key === "columns" && value.concat) adapted[key] = 1;
    else if (key === "labelLimit" && child > 140) adapted[key] = 140;
    else if (typeof child === "string" && child.startsWith("length(datum.")) adapted[key] = shorten(child);
    else if (key === "legend" && child) adapted[key] = { ...narrowSpec(child), ...LEGEND_BELOW };
    else adapted[key] = narrowSpec(child);
  }
  return adapted;
};
const LEGEND_BELOW = { orient: "bottom", direction: "vertical", columns: 1, labelLimit: 220 };

/* The width in a spec is that of the plot. The width of axes and names is known only after drawing, so it is reduced then. */
export const draw = async (container, spec, force = false) => {
  const availableWidth = container.parentElement.clientWidth;
  if (!availableWidth || (!force && container.dataset.availableWidth === String(availableWidth))) return null;
  container.dataset.availableWidth = String(availableWidth);
  const isNarrow = availableWidth < 500;
  const resized = { ...(isNarrow ? narrowSpec(spec) : spec) };
  resized.config = { ...resized.config, background: "transparent", padding: 2 };
  const isResizable = typeof spec.width === "number";
  if (isResizable) resized.width = Math.max(120, Math.min(MAX_WIDTH, availableWidth) - 90);
  if (isNarrow) {
    resized.config.axis = { ...resized.config.axis, labelLimit: 140 };
    resized.config.legend = { ...resized.config.legend, ...LEGEND_BELOW };
  }
  let result = await vegaEmbed(container, resized, EMBED_OPTIONS);
  for (let attempt = 0; attempt < 2 && isResizable; attempt += 1) {
    const svg = container.querySelector("svg");
    const excess = svg.getAttribute("width") - Math.min(availableWidth, MAX_WIDTH + 60);
    if (excess <= 0 || resized.width <= 120) break;
    result.finalize();
    resized.width = Math.max(120, resized.width - Math.ceil(excess));
    result = await vegaEmbed(container, resized, EMBED_OPTIONS);
  }
  const svg = container.querySelector("svg");
  if (svg) svg.setAttribute("aria-hidden", "true");
  return result.view;
};
