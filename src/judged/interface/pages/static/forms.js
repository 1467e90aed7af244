/* Forms: a selected option is submitted at once, and conditions on topics are suggested while typing. */
import { requestJson, createElement } from "./elements.js";

const STORAGE_KEY = "judged-selection";
const submitsOnChange = (form) => form?.method === "get" && form.matches("main .controls, main .choose") && !location.pathname.startsWith("/evaluator");

let submitTimer = 0;
document.addEventListener("change", ({ target }) => {
  if (!target.matches("select") || !submitsOnChange(target.form)) return;
  clearTimeout(submitTimer); // wait while arrow keys move through the options
  submitTimer = setTimeout(() => {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ path: location.pathname, name: target.name, top: scrollY }));
    target.form.requestSubmit();
  }, 300);
});
const stored = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null");
sessionStorage.removeItem(STORAGE_KEY);
if (stored?.path === location.pathname) {
  document.querySelector(`main form select[name="${CSS.escape(stored.name)}"]`)?.focus({ preventScroll: true });
  scrollTo(0, stored.top);
}

/** Suggest conditions after the existing text. A new condition starts after "and", "or", "not", and "(". */
const suggestConditions = async (where) => {
  const { conditions } = await requestJson("/api/v1/conditions").catch(() => ({ conditions: [] }));
  const datalist = createElement("datalist", { id: "conditions" });
  where.after(datalist);
  where.setAttribute("list", datalist.id);
  const updateSuggestions = () => {
    const [prefix] = where.value.match(/^.*(?:\b(?:and|or|not)\s|\()\s*/) ?? [""];
    datalist.replaceChildren(...conditions.map((condition) => new Option("", prefix + condition.expression)));
  };
  where.addEventListener("input", updateSuggestions);
  updateSuggestions();
};
const where = document.querySelector("main input[name=where]");
where?.addEventListener("focus", () => suggestConditions(where), { once: true });
