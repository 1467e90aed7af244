/* What several scripts build pages with, and ask for. */

/** Make an element of attributes and children; a text stays one, whatever it is. */
export const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

/** Mark the words of a query in a text that is split at them: those at odd places. */
export const marked = (pieces) => pieces.map((piece, at) => (at % 2 ? make("mark", {}, piece) : piece));

/** Ask the API, or send it a body; a problem that it tells of is thrown as an Error with its `fix` and `status`. */
export const ask = async (path, { body, signal } = {}) => {
  const sent = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, { ...sent, signal }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The workbench does not answer. Fix: see whether it still runs");
  });
  const isJson = answer.headers.get("Content-Type").startsWith("application/json");
  const found = await (isJson ? answer.json() : answer.text());
  if (answer.ok) return found;
  throw Object.assign(new Error(found.problem ?? "the request failed"), { fix: found.fix, status: answer.status });
};

/** Say what is wrong, and what to do about it. */
export const wording = ({ message, fix }) => [message, fix].filter(Boolean).join(". Fix: ");
