/* A click on a bar or a point opens its topic; with the keyboard, the table of topics does. */

/** The address of a topic beside the two runs that are compared. */
const addressOf = (pictures, topic) => `${pictures.dataset.topic}&id=${encodeURIComponent(topic)}`;

document.addEventListener("drawn", ({ target, detail }) => {
  const pictures = target.closest(".pictures");
  if (!pictures) return;
  detail.view.addEventListener("click", (event, item) => {
    const topic = item?.datum?.topic;
    if (topic === undefined) return;
    const address = addressOf(pictures, topic);
    if (event.ctrlKey || event.metaKey || event.shiftKey) open(address, "_blank", "noopener");
    else location.assign(address);
  });
});
