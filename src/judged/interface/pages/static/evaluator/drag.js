/* Drag a row by its handle, with mouse, pen, or finger. The row follows the pointer, and the other rows move. */

/** Return the index of a row at position `top`. It passes a neighbor when its edge is beyond the neighbor's middle. */
const indexAtTop = (rows, row, top) => {
  const middle = (row) => row.offsetTop + row.offsetHeight / 2;
  const bottom = top + row.offsetHeight;
  let index = rows.indexOf(row);
  while (index > 0 && top < middle(rows[index - 1])) index -= 1;
  while (index < rows.length - 1 && bottom > middle(rows[index + 1])) index += 1;
  return index;
};

/** Make the rows of `list` draggable.

    @param list the parent element of the rows
    @param rows () => the rows in order
    @param handlers { hold(index), carry(index), drop(isCanceled) }; `carry` must not remove the dragged row from the
      document, because that would end the drag */
export const draggable = (list, rows, handlers) => {
  let drag = null;

  const moveTo = (clientY) => {
    const { row, offset } = drag;
    const top = clientY - offset - list.getBoundingClientRect().top + list.scrollTop - list.clientTop;
    const index = indexAtTop(rows(), row, top);
    if (index !== rows().indexOf(row)) handlers.carry(index);
    row.style.transform = `translateY(${top - row.offsetTop}px)`;
  };

  const finish = (isCanceled) => {
    if (!drag) return;
    const { row, handle, pointerId } = drag;
    drag = null;
    row.classList.remove("dragged");
    row.style.transform = "";
    if (handle.hasPointerCapture(pointerId)) handle.releasePointerCapture(pointerId);
    removeEventListener("keydown", escape, true);
    handlers.drop(isCanceled);
  };

  const escape = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    finish(true);
  };

  list.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".handle");
    if (!handle || drag || event.button !== 0) return;
    const row = handle.closest(".row");
    drag = { row, handle, pointerId: event.pointerId, offset: event.clientY - row.getBoundingClientRect().top };
    handle.setPointerCapture(event.pointerId);
    row.classList.add("dragged");
    addEventListener("keydown", escape, true);
    handlers.hold(rows().indexOf(row));
  });
  list.addEventListener("pointermove", (event) => drag?.pointerId === event.pointerId && moveTo(event.clientY));
  list.addEventListener("pointerup", (event) => drag?.pointerId === event.pointerId && finish(false));
  list.addEventListener("pointercancel", (event) => drag?.pointerId === event.pointerId && finish(true));
};
