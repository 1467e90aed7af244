/* What several scripts build pages with. */

/** Make an element of attributes and children; a text stays one, whatever it is. */
export const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
