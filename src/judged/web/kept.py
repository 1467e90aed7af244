"""Results that are kept for the next request."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Kept:
    """The results of the last calls, each made once, however many requests ask for it at the same time.

    >>> kept = Kept(most=2)
    >>> kept.get("a", lambda: 1), kept.get("a", lambda: 2)
    (1, 1)
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._lock = Lock()
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Give what is kept under a key, or make it; an error is raised anew each time, and not kept."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._most:
                self._slots.popitem(last=False)
        with slot.lock:
            if slot.making:  # by this very thread, as the others wait: it would wait for itself
                raise RuntimeError(f"{key!r:.200} is made of itself")
            if not slot.made:
                slot.making = True
                try:
                    slot.value, slot.made = make(), True
                finally:
                    slot.making = False
        return slot.value


class _Slot:
    """One result, made under its own lock, so that others do not wait for it."""

    __slots__ = ("lock", "made", "making", "value")

    def __init__(self) -> None:
        self.lock = RLock()
        self.made = self.making = False
        self.value: Any = None
