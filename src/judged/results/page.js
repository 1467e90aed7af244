(() => {
  "use strict";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => {
    button.textContent = isDark() ? "Light colors" : "Dark colors";
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  label();

  if (typeof vegaEmbed === "undefined") return;
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const containers = [...document.querySelectorAll(".chart[data-chart]")];
  const drawAll = async () => {
    for (const container of containers) await draw(container, specs[container.dataset.chart]);
    root.dataset.chartsRendered = "yes";
  };
  let resizeTimer = 0;
  addEventListener("resize", () => {
    if (matchMedia("print").matches) return;
    clearTimeout(resizeTimer);
    resizeTimer = setTimeout(drawAll, 200);
  });
  drawAll();
})();
