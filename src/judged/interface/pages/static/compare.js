/* A click on a bar or a point opens its topic; with the keyboard, the table of topics does. */
document.addEventListener("drawn", ({ detail }) => {
  detail.view.addEventListener("click", (event, item) => {
    const address = item?.datum?.link;
    if (address === undefined) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) open(address, "_blank", "noopener");
    else location.assign(address);
  });
});
