/* Helpers that update HTML from the server. Unchanged elements are not touched, which avoids layout work. */
import { formatError } from "../elements.js";

/** Parse HTML from the server, in which all text is escaped. */
export const parse = (html) => Object.assign(document.createElement("template"), { innerHTML: html }).content.firstElementChild;

/** Set the text if it differs. */
export const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

/** Set an attribute if it differs; null removes it. */
export const updateAttribute = (element, name, value) => {
  if (value === null || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
};

/** Make an element equal to another, and change only the differences. */
export const morph = (element, target) => {
  for (const name of element.getAttributeNames()) if (!target.hasAttribute(name)) element.removeAttribute(name);
  for (const { name, value } of target.attributes) updateAttribute(element, name, value);
  const [current, expected] = [[...element.childNodes], [...target.childNodes]];
  const hasSameNodes = current.length === expected.length && current.every((node, i) => node.nodeName === expected[i].nodeName);
  if (!hasSameNodes) element.replaceChildren(...expected);
  else current.forEach((node, i) => {
    if (node.nodeType === Node.ELEMENT_NODE) morph(node, expected[i]);
    else if (node.data !== expected[i].data) node.data = expected[i].data;
  });
};

/** Show an error in an element, or hide the element for null. */
export const showError = (element, error) => {
  setText(element, error ? formatError(error) : "");
  element.hidden = !error;
};
