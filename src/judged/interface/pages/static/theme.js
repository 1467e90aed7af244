/* Light or dark: what the reader's system says, until they choose. Loaded before the page is drawn. */
(() => {
  "use strict";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    /* this browser keeps nothing */
  }
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  addEventListener("DOMContentLoaded", () => {
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
        /* it holds until the page is left */
      }
      label();
    });
    dark.addEventListener("change", label);
    label();
  });
})();
