"""A log of a dozen sessions, small enough to count by hand.

Times are seconds from the start of each session. Users are A to H, one letter a session line.
"""

from __future__ import annotations

from typing import Any

DAY = 1_700_006_400_000  # 2023-11-15, midnight UTC

# session, user, device: then pages (P) and events in order of time
SESSIONS: list[tuple[str, str, list[tuple[Any, ...]]]] = [
    # A looks twice, then adds a word; the last visit is not seen to end
    ("A", "desktop", [("P", 0, "red shoes", 10, {"suggested": False}), ("click", 5, 1), ("click", 25, 3),
                      ("like", 30), ("P", 70, "red running shoes", 5), ("click", 75, 2), ("dislike", 80)]),
    # A copies an answer from the page and leaves
    ("A", "desktop", [("P", 0, "blue hat", 10), ("copy", 3)]),
    # B mistypes, finds nothing, corrects, opens result 1 twice and result 4, and buys
    ("B", "mobile", [("P", 0, "grene tea", 0), ("P", 8, "green tea", 10), ("click", 10, 1), ("click", 15, 1),
                     ("click", 60, 4), ("rating", 90, 4.0), ("purchase", 100, 30.0), ("heartbeat", 120)]),
    # B turns to the second page, opens result 12, returns at once and adds a word
    ("B", "mobile", [("P", 0, "laptop", 10, {"suggested": True}),
                     ("P", 40, "laptop", 10, {"page": 2, "first_rank": 11}), ("click", 50, 12),
                     ("P", 55, "laptop bag", 10)]),
    # C reads the weather and comes back after 400 seconds with something else
    ("C", "desktop", [("P", 0, "weather", 3), ("P", 400, "news", 10), ("click", 405, 1), ("like", 405)]),
    # D puts into the cart without a click, reloads, opens result 1, asks for something else and buys elsewhere
    ("D", "desktop", [("P", 0, "tv", 10), ("hover", 2), ("add_to_cart", 9, 99.0), ("P", 20, "tv", 10),
                      ("click", 30, 1), ("P", 50, "radio", 10), ("purchase", 60, 50.0, {"serp": None})]),
    # E filters until nothing is left
    ("E", "mobile", [("P", 0, "cheap flights", 0, {"filtered": True})]),
    # E's clock is wrong: a click before its page; then a query that found nothing is answered by another one
    ("E", "mobile", [("P", 0, "flights", 10), ("click", -1, 2),
                     ("P", 10, "flights to rome", 4, {"rescued": True})]),
    # F jumps about: 5, 2, 9; then drops words, and leaves the page after a quarter of a minute
    ("F", "desktop", [("P", 0, "white oak book shelf", 10), ("click", 3, 5), ("click", 30, 2), ("click", 31, 9),
                      ("rating", 60, 2.5),
                      ("P", 100, "oak shelf", 10), ("click", 110, 1), ("page_exit", 125)]),
    # G buys more than an hour after the search: not counted for the page
    ("G", "desktop", [("P", 0, "sofa", 10), ("click", 5, 1), ("purchase", 4000, 500.0, {"serp": None})]),
    # H's visit of 8 seconds is logged as such; the next query comes after exactly 300 seconds
    ("H", "desktop", [("P", 0, "lamp", 2), ("click", 2, 1, {"dwell_ms": 8000}), ("P", 300, "lamps", 10)]),
    # H hovers and leaves
    ("H", "mobile", [("P", 0, "gift", 10), ("hover", 4)]),
]  # fmt: skip


def pages_and_events() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of `serp` and `event`."""
    pages: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    for session, (user, device, steps) in enumerate(SESSIONS):
        for action, seconds, *arguments in steps:
            extra_fields = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
            row = {
                "session": session,
                "user": ord(user) - ord("A"),
                "time_ms": DAY + session * 86_400_000 + seconds * 1000,
            }
            if action == "P":
                text, n_shown = arguments
                row |= {"query": text, "n_shown": n_shown, "n_returned": n_shown, "zero_results": n_shown == 0}
                pages.append(
                    {"serp": len(pages), **row, "device": device, "latency_ms": 100.0 + len(pages), **extra_fields}
                )
                continue
            last = pages[-1]
            rank = arguments[0] if action == "click" else None
            value = arguments[0] if action in {"add_to_cart", "purchase", "rating"} else None
            target = {"object_id": f"{last['query']}-{rank}"} if rank else {}
            events.append(
                {"serp": last["serp"], **row, "action": action, "rank": rank, "value": value, **target, **extra_fields}
            )
    return pages, events
