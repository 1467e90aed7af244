/* Forms: what is chosen applies at once, and conditions on topics are offered while they are typed. */
import { ask, make } from "./elements.js";

const KEPT = "judged-chosen";
const sends = (form) => form?.method === "get" && form.matches("main .controls, main .choose") && !location.pathname.startsWith("/evaluator");

let waiting = 0;
document.addEventListener("change", ({ target }) => {
  if (!target.matches("select") || !sends(target.form)) return;
  clearTimeout(waiting); // somebody who goes through the choices by arrow keys is not there yet
  waiting = setTimeout(() => {
    sessionStorage.setItem(KEPT, JSON.stringify({ path: location.pathname, name: target.name, top: scrollY }));
    target.form.requestSubmit();
  }, 300);
});
const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
sessionStorage.removeItem(KEPT);
if (kept?.path === location.pathname) {
  document.querySelector(`main form select[name="${CSS.escape(kept.name)}"]`)?.focus({ preventScroll: true });
  scrollTo(0, kept.top);
}

/** Offer conditions behind what is there already: after "and", "or", "not" and an opening bracket a new one begins. */
const offer = async (where) => {
  const { conditions } = await ask("/api/v1/conditions").catch(() => ({ conditions: [] }));
  const list = make("datalist", { id: "conditions" });
  where.after(list);
  where.setAttribute("list", list.id);
  const show = () => {
    const [before] = where.value.match(/^.*(?:\b(?:and|or|not)\s|\()\s*/) ?? [""];
    list.replaceChildren(...conditions.map((condition) => new Option("", before + condition.expression)));
  };
  where.addEventListener("input", show);
  show();
};
const where = document.querySelector("main input[name=where]");
where?.addEventListener("focus", () => offer(where), { once: true });
