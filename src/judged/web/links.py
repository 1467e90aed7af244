"""What was chosen on one page goes along to the others: measure, baseline, run, topics and relevance level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.web.filters import pairs, query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.web.filters import Address

_TOPICS = {"where": "where", "rel": "rel"}
_PAIR = {"measure": "measure", "baseline": "first", "run": "second", **_TOPICS}
_CALLED = {
    "/leaderboard": {"measure": "measure", "baseline": "baseline", "run": "run", **_TOPICS},
    "/compare": _PAIR,
    "/topics": {"measure": "measure", "baseline": "runs", "run": "runs", **_TOPICS},
    "/topic": _PAIR,
    "/matrix": {"measure": "y", "baseline": "baseline", "run": "run", **_TOPICS},
    "/slices": {"measure": "measures", "baseline": "baseline", "run": "run", **_TOPICS},
    "/traces": _TOPICS,
    "/rag": {"where": "where"},
    "/change": {"baseline": "first", "run": "second"},
}
"""What each page calls what is chosen."""


def chosen(path: str, given: Address) -> dict[str, str]:
    """Read what an address chose, by the names that all pages share.

    >>> chosen("/compare", {"first": "bm25", "second": "rrf", "page": "2", "where": "words > 4"})
    {'baseline': 'bm25', 'run': 'rrf', 'where': 'words > 4'}
    >>> chosen("/topics", {"runs": ["bm25", "rrf"]}), chosen("/leaderboard", {"measures": "AP,RR"})
    ({'baseline': 'bm25', 'run': 'rrf'}, {'measure': 'AP'})
    """
    known: dict[str, list[str]] = {}
    for name, value in pairs(given):
        known.setdefault(name, []).append(str(value))
    if len(known.get("runs", ())) != 2:  # more are columns, and no pair
        known.pop("runs", None)
    called = _CALLED.get(path, {})
    if "measures" in known and path in {"/leaderboard", "/slices"}:
        known.setdefault(called["measure"], [""])[0] = known["measures"][0].split(",")[0].strip()
    found = {name: known.get(own, [""])[-1 if name == "run" else 0] for name, own in called.items()}
    return {name: value for name, value in found.items() if value not in {"", "*"}}


def link(path: str, known: Mapping[str, str], **more: Any) -> str:
    """Lead to a page with what is chosen, as it calls it; `more` are choices anew, and parameters of its own.

    >>> link("/matrix", {"measure": "AP", "run": "rrf"}, baseline="bm25", quadrant="healthy")
    '/matrix?y=AP&run=rrf&baseline=bm25&quadrant=healthy'
    >>> link("/learn", {"run": "rrf"}), link("/slices", {"where": "words > 4"}, where=None)
    ('/learn', '/slices')
    """
    given, called = {**known, **more}, _CALLED.get(path, {})
    if path == "/topics" and not (given.get("baseline") and given.get("run")):
        given |= {"baseline": "", "run": ""}
    address = [(called.get(name, name), value) for name, value in given.items() if name in called or name in more]
    return path + query([pair for pair in address if pair[1]]).removesuffix("?")
