/* Dragging a row by its handle, with mouse, pen or finger. The row follows the pointer; the others make way. */

/** Find the place of a row whose top is at `top`: it passes a neighbor when its edge is beyond the neighbor's middle. */
const placeAt = (rows, row, top) => {
  const middle = (one) => one.offsetTop + one.offsetHeight / 2;
  const bottom = top + row.offsetHeight;
  let at = rows.indexOf(row);
  while (at > 0 && top < middle(rows[at - 1])) at -= 1;
  while (at < rows.length - 1 && bottom > middle(rows[at + 1])) at += 1;
  return at;
};

/** Make the rows of `list` movable.

    @param list the element that holds the rows
    @param rows () => the rows in order
    @param act { hold(at), carry(at), drop(back) }; `carry` puts the rows in their new order without taking the row
      that is held out of the document, which would end the drag */
export const draggable = (list, rows, act) => {
  let held = null;

  const follow = (clientY) => {
    const { row, grip } = held;
    const top = clientY - grip - list.getBoundingClientRect().top + list.scrollTop - list.clientTop;
    const at = placeAt(rows(), row, top);
    if (at !== rows().indexOf(row)) act.carry(at);
    row.style.transform = `translateY(${top - row.offsetTop}px)`;
  };

  const end = (back) => {
    if (!held) return;
    const { row, handle, pointer } = held;
    held = null;
    row.classList.remove("held");
    row.style.transform = "";
    if (handle.hasPointerCapture(pointer)) handle.releasePointerCapture(pointer);
    removeEventListener("keydown", escape, true);
    act.drop(back);
  };

  const escape = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    end(true);
  };

  list.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".handle");
    if (!handle || held || event.button !== 0) return;
    const row = handle.closest(".row");
    held = { row, handle, pointer: event.pointerId, grip: event.clientY - row.getBoundingClientRect().top };
    handle.setPointerCapture(event.pointerId);
    row.classList.add("held");
    addEventListener("keydown", escape, true);
    act.hold(rows().indexOf(row));
  });
  list.addEventListener("pointermove", (event) => held?.pointer === event.pointerId && follow(event.clientY));
  list.addEventListener("pointerup", (event) => held?.pointer === event.pointerId && end(false));
  list.addEventListener("pointercancel", (event) => held?.pointer === event.pointerId && end(true));
};
