/* The dialog into which a list is pasted: judged reads it, whatever its form is. */
import { make, write } from "./dom.js";
import { ask } from "./session.js";

const $ = (id) => document.getElementById(id);

/** Connect the dialog; `query()` is the state, `done(query, sentence)` gets it with what was read. */
export const pasting = (query, done) => {
  const [dialog, field, problem] = [$("paste-dialog"), $("pasted"), $("paste-problem")];

  const send = (state, into, text) =>
    ask(`/api/v1/evaluator/paste?${state}&into=${into}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }),
    });

  const read = async (event) => {
    event.preventDefault();
    const into = event.target.elements.into.value;
    const parts = field.value.split(/\n[ \t]*\n/).filter((part) => part.trim());
    const two = into === "list" && parts.length === 2;
    try {
      let answer = await send(query(), into, two ? parts[0] : field.value);
      if (two) answer = await send(answer.query, "other", parts[1]);
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
