/* Small helpers for what the server wrote: an element that is not touched costs no layout. */
import { wording } from "../elements.js";

/** Read a part of a page that judged wrote, in which every text is escaped. */
export const parse = (html) => Object.assign(document.createElement("template"), { innerHTML: html }).content.firstElementChild;

/** Set a text only where it differs. */
export const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

/** Set an attribute only where it differs; null takes it away. */
export const mark = (element, name, value) => {
  if (value === null || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
};

/** Make an element like another, and touch only what differs. */
export const morph = (element, like) => {
  for (const name of element.getAttributeNames()) if (!like.hasAttribute(name)) element.removeAttribute(name);
  for (const { name, value } of like.attributes) mark(element, name, value);
  const [old, wanted] = [[...element.childNodes], [...like.childNodes]];
  const isAlike = old.length === wanted.length && old.every((one, at) => one.nodeName === wanted[at].nodeName);
  if (!isAlike) element.replaceChildren(...wanted);
  else old.forEach((one, at) => {
    if (one.nodeType === Node.ELEMENT_NODE) morph(one, wanted[at]);
    else if (one.data !== wanted[at].data) one.data = wanted[at].data;
  });
};

/** Tell what is wrong in an element; nothing where nothing is. */
export const complain = (element, error) => {
  write(element, error ? wording(error) : "");
  element.hidden = !error;
};
