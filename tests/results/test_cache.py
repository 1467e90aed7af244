"""What is computed once and kept with its object."""

from __future__ import annotations

from threading import Event, Thread

from judged.results.types import cached_property


class Slow:
    """Something that takes until it is told to end."""

    def __init__(self, may_end: Event) -> None:
        self.begun, self.may_end, self.computed = Event(), may_end, 0

    @cached_property
    def value(self) -> int:
        """How often it was computed."""
        self.begun.set()
        assert self.may_end.wait(20)
        self.computed += 1
        return self.computed


def test_nobody_waits_for_the_property_of_another_object() -> None:
    held, free = Slow(Event()), Slow(Event())
    free.may_end.set()
    slow = Thread(target=lambda: held.value, daemon=True)
    slow.start()
    assert held.begun.wait(20)
    quick = Thread(target=lambda: free.value, daemon=True)
    quick.start()
    quick.join(10)
    assert free.computed == 1  # with functools' own, on Python 3.11, it waits for the first
    held.may_end.set()
    slow.join(20)
    assert held.value == held.value == held.computed == 1


def test_it_has_a_name_and_a_text() -> None:
    assert Slow.value.__doc__ == "How often it was computed."
    assert Slow.value.attrname == "value"
