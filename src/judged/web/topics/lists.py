"""The judged lists of a topic: what stands where, how it moved, and the relevant documents that no list shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.diagnosis.diff import diff
from judged.errors import JudgedError
from judged.judging.dense import all_tied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.diagnosis.diff import DiffRow, TopicDiff
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.workspace import Workspace

_SNIPPET = 180  # characters of a text


@dataclass(frozen=True)
class ListedDocument:
    """One document of a list."""

    key: int  # the same for the same document in both lists
    doc_id: str
    rank: int | None  # from 1; None in a run without scores
    grade: float | None  # None: unjudged
    state: str  # `relevant`, `not relevant`, or `unjudged`
    there: int | None  # the rank in the other list, also below what is shown; None: not returned, or no other list
    there_shown: bool  # whether the other list shows it
    # how it moved from the left list to the right one: `up 3`, `down 2`, `same`, `new`, `gone`, or empty where there is
    # only one list
    moved: str
    # what it adds to the score on the right, less what it adds on the left. None where documents do not add to the
    # measure by themselves.
    change: float | None
    tied: bool  # whether another document of the run has the same score
    title: str  # of its text, where it is known
    snippet: str  # of its text, where it is known
    has_text: bool


@dataclass(frozen=True)
class JudgedList:
    """The first documents of a run for one topic."""

    run: str
    score: float | None
    # ranked, present: whether the run has scores, and whether it has the topic
    ranked: bool
    present: bool
    # returned, unjudged: how many documents it returned for the topic, and how many of these are unjudged
    returned: int
    unjudged: int
    unjudged_shown: int  # the same of those that are shown
    relevant_shown: int  # the same of those that are shown
    documents: tuple[ListedDocument, ...]


@dataclass(frozen=True)
class MissedDocument:
    """A relevant document that no list shows."""

    doc_id: str
    grade: float
    ranks: tuple[int | None, ...]  # one a list: where it stands below what is shown; None: not returned
    places: tuple[str, ...]  # the same in words
    title: str
    snippet: str
    has_text: bool


def side_by_side(
    workspace: Workspace,
    scored: Sequence[tuple[Judged, float | None]],
    level: float,
    depth: int,
    found: TopicDiff | None,  # what `diff` found of two lists; None where it can find nothing
) -> tuple[JudgedList, ...]:
    """Lay out one list or two."""
    all_ranks = [_ranks(one) for one, _ in scored]
    shown = dict.fromkeys(doc for ranks in all_ranks for doc in list(ranks)[:depth])
    moved = {} if found is None else {row.doc_id: row for row in found.rows}
    made: list[JudgedList] = []
    for at, (one, score) in enumerate(scored):
        other = all_ranks[1 - at] if len(scored) == 2 and scored[1 - at][0].ranked else {}
        about = _About(workspace, level, depth, {doc: key for key, doc in enumerate(shown)}, moved, other)
        grades = grades_of(one)
        documents = tuple(
            about.document(doc, rank if one.ranked else None, grades.get(doc), tied=tied and one.ranked)
            for doc, (rank, tied) in list(all_ranks[at].items())[:depth]
        )
        returned = int(one.returned[0])
        made.append(
            JudgedList(
                run=one.run.name,
                score=score,
                ranked=one.ranked,
                present=bool(one.present[0]),
                returned=returned,
                unjudged=returned - len(one.rank),
                unjudged_shown=sum(row.grade is None for row in documents),
                relevant_shown=sum(row.state == "relevant" for row in documents),
                documents=documents,
            )
        )
    return tuple(made)


@dataclass(frozen=True)
class _About:
    """What is known of the documents of a list beside the list itself: keys, movements, and the other list's ranks."""

    workspace: Workspace
    level: float
    depth: int
    keys: Mapping[str, int]
    moved: Mapping[str, DiffRow]
    other: Mapping[str, tuple[int, bool]]

    def document(self, doc: str, rank: int | None, grade: float | None, *, tied: bool) -> ListedDocument:
        there, row = self.other.get(doc, (0, False))[0], self.moved.get(doc)
        title, snippet, has_text = _said(self.workspace, doc)
        return ListedDocument(
            key=self.keys[doc],
            doc_id=doc,
            rank=rank,
            grade=grade,
            state=state_of(grade, self.level),
            there=there or None,
            there_shown=0 < there <= self.depth,
            moved="" if row is None else row.movement,
            change=None if row is None else row.changes[0],
            tied=tied,
            title=title,
            snippet=snippet,
            has_text=has_text,
        )


def missed(
    workspace: Workspace, grades: Mapping[str, float], ones: Sequence[Judged], level: float, depth: int
) -> tuple[MissedDocument, ...]:
    """List the relevant documents that no list shows, the best grades first, with where each list has them."""
    all_ranks = [_ranks(one) for one in ones]
    found: list[MissedDocument] = []
    for doc, grade in sorted(grades.items(), key=lambda pair: (-pair[1], pair[0])):
        ranks = [known.get(doc, (0, False))[0] for known in all_ranks]
        if state_of(grade, level) != "relevant" or any(0 < rank <= depth for rank in ranks):
            continue
        places = tuple(_place(rank, one) for rank, one in zip(ranks, ones, strict=True))
        known = tuple(rank or None if one.ranked else None for rank, one in zip(ranks, ones, strict=True))
        found.append(MissedDocument(doc, grade, known, places, *_said(workspace, doc)))
    return tuple(found)


def difference(workspace: Workspace, query_id: str, runs: Sequence[str], measure: Measure, depth: int) -> TopicDiff:
    """Put two runs side by side on one topic."""
    qrels, (first, second) = workspace.one_topic(query_id, runs)
    return diff(qrels, first, second, topic=query_id, measure=measure, depth=depth).topics[0]


def can_be_compared(ones: Sequence[Judged], measure: Measure) -> bool:
    """Tell whether `diff` has something to say of these lists."""
    if len(ones) != 2 or not measure.properties.topics_apart or not all(one.ranked and one.present[0] for one in ones):
        return False
    try:
        return all(len(measure(one)) == 1 for one in ones)
    except JudgedError:
        return False


def state_of(grade: float | None, level: float) -> str:
    """Say in a word what a grade means.

    >>> state_of(2.0, 1.0), state_of(0.0, 1.0), state_of(None, 1.0), state_of(-2.0, -5.0)
    ('relevant', 'not relevant', 'unjudged', 'not relevant')
    """
    if grade is None:
        return "unjudged"
    return "relevant" if grade >= level and grade >= 0 else "not relevant"


def grades_of(one: Judged) -> dict[str, float]:
    """Give the grade of every judged document of the topic."""
    names = one.qrels.index.row_names
    return dict(zip((names[row] for row in one.label_row.tolist()), one.label_grade.tolist(), strict=True))


def _ranks(one: Judged) -> dict[str, tuple[int, bool]]:
    """Give rank and whether it is tied of every returned document, in the order of the ranks."""
    every, first, last = all_tied(one.run, one.query_ids, one.ranking)
    tied: list[bool] = np.not_equal(first, last).tolist()
    return dict(zip(every.doc.to_pylist(), zip(every.rank.tolist(), tied, strict=True), strict=True))


def _place(rank: int, one: Judged) -> str:
    if not rank:
        return "not returned"
    return f"rank {rank:,}" if one.ranked else "returned"


def _said(workspace: Workspace, doc: str) -> tuple[str, str, bool]:
    """Give title and snippet of a document, and whether its text is known: the last fields of both kinds."""
    texts = workspace.texts
    if texts is None or doc not in texts:
        return "", "", False
    title = " ".join(texts.title(doc)[:1000].split())[:_SNIPPET]
    return title, texts.snippet(doc, _SNIPPET), True
