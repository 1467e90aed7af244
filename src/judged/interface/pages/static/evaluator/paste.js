/* The dialog into which a list is pasted: judged reads it, whatever its form is. */
import { ask } from "../elements.js";
import { complain } from "./dom.js";

const $ = (id) => document.getElementById(id);

/** Connect the dialog; `query()` is the state, `done(query, sentence, into)` gets it with what was read. */
export const pasting = (query, done) => {
  const [dialog, field, problem] = [$("paste-dialog"), $("pasted"), $("paste-problem")];
  const send = (state, into, text) => ask(`/api/v1/evaluator/paste?${state}&into=${into}`, { body: { text } });

  $("paste").addEventListener("click", () => {
    complain(problem, null);
    dialog.showModal();
    field.select();
  });
  $("paste-cancel").addEventListener("click", () => dialog.close());
  $("paste-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const into = event.target.elements.into.value;
    const parts = field.value.split(/\n[ \t]*\n/).filter((part) => part.trim());
    const two = into === "list" && parts.length === 2;
    try {
      let answer = await send(query(), into, two ? parts[0] : field.value);
      if (two) answer = await send(answer.query, "other", parts[1]);
      dialog.close();
      done(answer.query, answer.cut ? `${answer.read_as} ${answer.cut} more were left out.` : answer.read_as, into);
    } catch (error) {
      complain(problem, error);
      field.focus();
    }
  });
};
