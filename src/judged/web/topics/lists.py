"""The judged lists of a topic: what stands where, how it moved, and the relevant documents that no list shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.answer import TEXT, Column, Table, columns_of, significant
from judged.diagnosis.diff import diff
from judged.errors import JudgedError
from judged.judging.dense import all_tied
from judged.web.topics.one import state_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.diagnosis.diff import TopicDiff
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.workspace import Workspace

_SNIPPET = 180  # characters of a text
_TEXTS = ("title", "snippet", "has_text")


def difference(workspace: Workspace, lists: Sequence[Judged], measure: Measure, depth: int) -> TopicDiff | None:
    """Put two runs side by side on one topic; None where `diff` has nothing to say of them."""
    ready = len(lists) == 2 and all(judged.ranked and judged.present[0] for judged in lists)
    if not ready or not measure.properties.topics_apart:
        return None
    try:
        if any(len(measure(judged)) != 1 for judged in lists):
            return None
    except JudgedError:
        return None
    query_id = lists[0].query_ids[0]
    qrels, (first, second) = workspace.one_topic(query_id, [judged.run.name for judged in lists])
    return diff(qrels, first, second, topic=query_id, measure=measure, depth=depth).topics[0]


def list_tables(
    workspace: Workspace,
    lists: Sequence[Judged],
    scores: Sequence[float],
    grades: Mapping[str, float],
    level: float,
    depth: int,
    compared: TopicDiff | None,
) -> Iterator[Table]:
    """Lay out the runs, their first documents, and the relevant documents that none of them shows."""
    ranks = [_ranks(judged) for judged in lists]
    shown = dict.fromkeys(doc for known in ranks for doc in list(known)[:depth])
    keys = {doc: key for key, doc in enumerate(shown)}  # the same for the same document in both lists
    moved = {} if compared is None else {row.doc_id: row for row in compared.rows}
    rows: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    for at, judged in enumerate(lists):
        run, ranked = judged.run.name, judged.ranked
        other = ranks[1 - at] if len(lists) == 2 and lists[1 - at].ranked else {}
        for doc, (rank, tied) in list(ranks[at].items())[:depth]:
            there, change, grade = other.get(doc, (0, False))[0], moved.get(doc), grades.get(doc)
            rows.append({
                "run": run,
                "key": keys[doc],
                "doc_id": doc,
                "rank": rank if ranked else None,
                "grade": grade,
                "state": state_of(grade, level),
                "there": there or None,  # the rank in the other list, also below what is shown
                "there_shown": 0 < there <= depth,
                "moved": "" if change is None else change.movement,  # from the left list to the right one
                "change": None if change is None else change.changes[0],  # what it adds to the difference
                "tied": tied and ranked,
                **_text(workspace, doc),
            })  # fmt: skip
        mine = [row for row in rows if row["run"] == run]
        returned = int(judged.returned[0])
        runs.append({
            "run": run,
            "score": scores[at],
            "ranked": ranked,
            "present": bool(judged.present[0]),
            "returned": returned,
            "unjudged": returned - len(judged.rank),
            "unjudged_shown": sum(row["grade"] is None for row in mine),
            "relevant_shown": sum(row["state"] == "relevant" for row in mine),
        })  # fmt: skip
    names = ("run", "key", "doc_id", "rank", "grade", "state", "there", "there_shown", "moved", "change", "tied")
    yield Table("lists", columns_of(runs, *runs[0]) if runs else (), only="data")
    yield Table("documents", columns_of(rows, *names, *_TEXTS), only="data")
    yield _missed(workspace, lists, ranks, grades, level, depth)


def _missed(
    workspace: Workspace,
    lists: Sequence[Judged],
    ranks: Sequence[Mapping[str, tuple[int, bool]]],
    grades: Mapping[str, float],
    level: float,
    depth: int,
) -> Table:
    """List the relevant documents that no list shows, the best grades first, with where each list has them."""
    rows: list[dict[str, Any]] = []
    for doc, grade in sorted(grades.items(), key=lambda pair: (-pair[1], pair[0])):
        places = [known.get(doc, (0, False))[0] for known in ranks]
        if state_of(grade, level) == "relevant" and not any(0 < place <= depth for place in places):
            rows.append({"doc_id": doc, "grade": grade, "places": places, **_text(workspace, doc)})
    columns = list(columns_of(rows, ("doc_id", TEXT, "Document"), ("grade", significant(), "Grade"), *_TEXTS))
    for at, judged in enumerate(lists):
        run, places = judged.run.name, [row["places"][at] for row in rows]
        where = "rank {:,}" if judged.ranked else "returned"
        said = [where.format(place) if place else "not returned" for place in places]
        columns += [
            Column(f"rank:{run}", [place or None if judged.ranked else None for place in places], only="data"),
            Column(f"place:{run}", said, TEXT, run),
        ]
    return Table("missed", tuple(columns), "Relevant documents that are not shown")


def _ranks(judged: Judged) -> dict[str, tuple[int, bool]]:
    """Give rank and whether it is tied of every returned document, in the order of the ranks."""
    every, first, last = all_tied(judged.run, judged.query_ids, judged.ranking)
    tied: list[bool] = np.not_equal(first, last).tolist()
    return dict(zip(every.doc.to_pylist(), zip(every.rank.tolist(), tied, strict=True), strict=True))


def _text(workspace: Workspace, doc: str) -> dict[str, Any]:
    """Give title and snippet of a document, and whether its text is known."""
    texts = workspace.texts
    if texts is None or doc not in texts:
        return {"title": "", "snippet": "", "has_text": False}
    title = " ".join(texts.title(doc)[:1000].split())[:_SNIPPET]
    return {"title": title, "snippet": texts.snippet(doc, _SNIPPET), "has_text": True}
