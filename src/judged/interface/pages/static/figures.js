/* Draws all charts of a page, and redraws them when the width changes. */
import { draw } from "../shared/drawing.js";

const specs = new Map(
  [...document.querySelectorAll("script[data-spec]")].map((script) => [script.dataset.spec, JSON.parse(script.textContent)]),
);

/** Draw all charts; each dispatches the event "chart-rendered". */
const drawAll = async () => {
  for (const container of document.querySelectorAll(".chart[data-chart]")) {
    const view = await draw(container, specs.get(container.dataset.chart));
    if (view) container.dispatchEvent(new CustomEvent("chart-rendered", { bubbles: true, detail: { view } }));
  }
  document.documentElement.dataset.chartsRendered = "yes";
};

let resizeTimer = 0;
addEventListener("resize", () => {
  clearTimeout(resizeTimer);
  resizeTimer = setTimeout(drawAll, 200);
});
drawAll();
