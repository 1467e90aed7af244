/* A click on a bar or point opens its topic. Keyboard users open topics from the table. */
document.addEventListener("chart-rendered", ({ detail }) => {
  detail.view.addEventListener("click", (event, mark) => {
    const url = mark?.datum?.link;
    if (url === undefined) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) open(url, "_blank", "noopener");
    else location.assign(url);
  });
});
