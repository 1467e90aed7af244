/* Draws every chart of a page, and again when the page gets another width. */
import { draw } from "../shared/drawing.js";

const specs = new Map(
  [...document.querySelectorAll("script[data-spec]")].map((one) => [one.dataset.spec, JSON.parse(one.textContent)]),
);

/** Draw all charts, each of which tells when it is drawn. */
const drawAll = async () => {
  for (const place of document.querySelectorAll(".chart[data-chart]")) {
    const view = await draw(place, specs.get(place.dataset.chart));
    if (view) place.dispatchEvent(new CustomEvent("drawn", { bubbles: true, detail: { view } }));
  }
  document.documentElement.dataset.drawn = "yes";
};

let waiting = 0;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(drawAll, 200);
});
drawAll();
