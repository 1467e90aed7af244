/* Helpers shared by several scripts: elements and requests. */

/** Create an element with attributes and children. Strings become text nodes and are never parsed as HTML. */
export const createElement = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

/** Highlight the matches of a query in a split text: the pieces at odd indices. */
export const highlightMatches = (pieces) => pieces.map((piece, i) => (i % 2 ? createElement("mark", {}, piece) : piece));

/** Send a request, with an optional JSON body, and return the parsed response. Throw an Error with `fix` and `status`. */
export const requestJson = async (path, { body, signal } = {}) => {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, { ...options, signal }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The workbench does not respond. Fix: check whether it is running");
  });
  const isJson = response.headers.get("Content-Type").startsWith("application/json");
  const content = await (isJson ? response.json() : response.text());
  if (response.ok) return content;
  throw Object.assign(new Error(content.problem ?? "The request failed"), { fix: content.fix, status: response.status });
};

/** Format an error with its fix. */
export const formatError = ({ message, fix }) => [message, fix].filter(Boolean).join(". Fix: ");
