/* Dialog for pasting a list; the server detects its format. */
import { requestJson } from "../elements.js";
import { showError } from "./dom.js";

const $ = (id) => document.getElementById(id);

/** Connect the dialog. `query()` returns the state; `onRead(query, message, side)` gets the new one. */
export const connectPasteDialog = (query, onRead) => {
  const [dialog, field, problem] = [$("paste-dialog"), $("pasted"), $("paste-problem")];
  const send = (state, into, text) => requestJson(`/api/v1/evaluator/paste?${state}&into=${into}`, { body: { text } });

  $("paste").addEventListener("click", () => {
    showError(problem, null);
    dialog.showModal();
    field.select();
  });
  $("paste-cancel").addEventListener("click", () => dialog.close());
  $("paste-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const into = event.target.elements.into.value;
    const parts = field.value.split(/\n[ \t]*\n/).filter((part) => part.trim());
    const isPair = into === "list" && parts.length === 2;
    try {
      let answer = await send(query(), into, isPair ? parts[0] : field.value);
      if (isPair) answer = await send(answer.query, "other", parts[1]);
      dialog.close();
      onRead(answer.query, answer.n_omitted ? `${answer.read_as} ${answer.n_omitted} more documents were omitted.` : answer.read_as, into);
    } catch (error) {
      showError(problem, error);
      field.focus();
    }
  });
};
