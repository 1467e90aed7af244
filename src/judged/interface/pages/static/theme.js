/* Theme: the system setting until the user selects one. Loaded before rendering, so that colors do not flash. */
(() => {
  "use strict";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  try {
    const stored = localStorage.getItem("theme");
    if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  } catch {
    /* storage is disabled */
  }
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  addEventListener("DOMContentLoaded", () => {
    const isNarrow = matchMedia("(max-width: 40rem)").matches; // settings of a page are one line on a phone
    for (const settings of document.querySelectorAll("details.settings")) settings.open = !isNarrow || Boolean(settings.querySelector(".problem"));
    const button = document.getElementById("theme");
    if (!button) return;
    const label = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", isDark() ? "Light colors" : "Dark colors");
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem("theme", root.dataset.theme);
      } catch {
        /* applies until the page is closed */
      }
      label();
    });
    dark.addEventListener("change", label);
    label();
  });
})();
