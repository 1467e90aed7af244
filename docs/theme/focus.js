// Wide tables scroll: the keyboard must reach them. The theme wraps them after the page has loaded.
"use strict";
document$.subscribe(() =>
  setTimeout(() => {
    for (const wrapper of document.querySelectorAll(".md-typeset__scrollwrap")) {
      wrapper.tabIndex = 0;
      wrapper.setAttribute("role", "region");
      wrapper.setAttribute("aria-label", "Table");
    }
  }),
);
