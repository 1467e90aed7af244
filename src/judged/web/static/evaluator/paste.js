/* The dialog into which a list is pasted: judged reads it, whatever its form is. */
import { make, write } from "./dom.js";
import { ask } from "./session.js";

const $ = (id) => document.getElementById(id);

/** Connect the dialog; `query()` is the state, `done(query, sentence)` gets it with what was read. */
export const pasting = (query, done) => {
  const [dialog, field, problem] = [$("paste-dialog"), $("pasted"), $("paste-problem")];

  const read = async (event) => {
    event.preventDefault();
    try {
      const answer = await ask(`/api/v1/evaluator/paste?${query()}&into=${event.target.elements.into.value}`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text: field.value }),
      });
      const cut = answer.cut ? ` ${answer.cut} more were left out.` : "";
      dialog.close();
      done(answer.query, `${answer.read_as}${cut}`);
    } catch (error) {
      problem.replaceChildren(...[error.message, error.fix].filter(Boolean).map((text) => make("p", { text })));
      field.focus();
    }
  };

  $("paste").addEventListener("click", () => {
    write(problem, "");
    dialog.showModal();
    field.select();
  });
  $("paste-form").addEventListener("submit", read);
  $("paste-cancel").addEventListener("click", () => dialog.close());
};
