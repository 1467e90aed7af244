/* Small helpers to build elements and to write numbers as judged's pages write them. */

/** Make an element: properties (`class`, `text`, `aria-...`, any attribute) and children. */
export const make = (name, properties = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "text") element.textContent = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((one) => one !== null && one !== undefined));
  return element;
};

/** Set a text only where it differs: an element that is not touched costs no layout. */
export const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

/** Set an attribute only where it differs; null takes it away. */
export const mark = (element, name, value) => {
  if (value === null || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
};

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** Write a number with so many decimals, and with more where it would seem to be a 0 or 1 that it is not. */
const decimal = (value, digits) => {
  const size = Math.abs(value), least = 0.5 * 10 ** -digits, off = Math.abs(size - 1);
  if (size <= 1e-12) return (0).toFixed(digits);
  if (size < least) return value.toExponential(1).replace(/([+-])(\d)$/, "$10$2");
  const more = off > 1e-12 && off < least ? Math.max(digits + 1, Math.ceil(-Math.log10(off) - 1e-9)) : digits;
  return value.toFixed(more);
};

/** Write a score; a dash where there is none. */
export const score = (value, digits = 4) => (isNumber(value) ? decimal(value, digits) : "–");

/** Write a difference with its sign, and no sign before zero. */
export const signed = (value, digits = 4) => {
  if (!isNumber(value)) return "–";
  const text = decimal(Math.abs(value), digits);
  return value === 0 ? text : `${value > 0 ? "+" : "−"}${text}`;
};
