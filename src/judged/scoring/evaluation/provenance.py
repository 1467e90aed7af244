"""What numbers rest on: judgments, runs, policies and versions; the same head in every document, whoever computed."""

from __future__ import annotations

import platform
from collections import defaultdict
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.results.notes import lines
from judged.scoring.evaluation.facts import Policies, QrelsFacts, RunFacts
from judged.scoring.evaluation.notes import list_notes, notes_of_runs, qrels_notes, unjudged_notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.data.qrels import Qrels
    from judged.results.notes import Note
    from judged.scoring.judging import Judged, TopicPolicy
    from judged.scoring.measures.base import Measure
    from judged.stats.interval import IntervalMethod


@dataclass(frozen=True)
class Provenance:
    """What numbers rest on."""

    qrels: QrelsFacts
    policies: Policies
    runs: tuple[RunFacts, ...]
    versions: Mapping[str, str]
    notes: tuple[Note, ...] = ()  # about the judgments, about the runs together, and about each run, its subject
    interval: IntervalMethod | None = None  # how intervals over topics were made, where there are any

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that should be known before the numbers are used."""
        return lines(self.notes)

    @property
    def where(self) -> str:
        """The expression by which topics were chosen; empty where all count."""
        return self.qrels.where

    def to_dict(self) -> dict[str, Any]:
        """Give ``judged, versions, qrels, policies, runs`` as plain Python values: the head of a document."""
        interval = {} if self.interval is None else {"ci": vars(self.interval)}
        facts = [field.name for field in fields(RunFacts) if field.name != "name"]
        warnings: defaultdict[str, list[str]] = defaultdict(list)
        for note in self.notes:
            warnings[note.subject].append(note.text)
        return {
            "judged": self.versions.get("judged", ""),
            "versions": dict(self.versions),
            "qrels": {**asdict(self.qrels), "grades": list(self.qrels.grades)},
            "policies": {**vars(self.policies), **interval},
            "runs": {
                run.name: {
                    **{name: getattr(run, name) for name in facts},
                    "missing_topics": list(run.missing_topics),
                    "warnings": warnings[run.name],
                }
                for run in self.runs
            },
        }


def provenance_of_lists(
    lists: Sequence[Judged],
    measures: Sequence[Measure],
    *,
    topics: TopicPolicy = "qrels",
    dialect: str = "judged",
) -> Provenance:
    """Tell what judged lists of one ranking policy rest on, with the notes that `evaluate` has for them."""
    first = lists[0]
    ranking = first.ranking
    chosen = Policies(topics, ranking.ties, ranking.depth, ranking.precision, dialect)
    notes = qrels_notes(first.qrels, measures, measures) + list_notes(lists, chosen, measures) + unjudged_notes(lists)
    runs = tuple(map(run_facts, lists))
    return Provenance(qrels_facts(first.qrels), chosen, runs, versions(), notes + notes_of_runs(lists, topics))


def run_facts(judged: Judged) -> RunFacts:
    """Tell what is worth knowing of a run that was judged."""
    return RunFacts(
        name=judged.run.name,
        path=judged.run.where,
        sha256=judged.run_sha256,
        returned_topics=int(np.count_nonzero(judged.returned) + np.count_nonzero(judged.extra_returned)),
        missing_topics=tuple(judged.query_ids[topic] for topic in np.flatnonzero(judged.returned == 0).tolist()),
        extra_topics=len(judged.extra),
        returned_judged=len(judged.topic),
    )


def qrels_facts(qrels: Qrels) -> QrelsFacts:
    """Tell what is worth knowing of judgments."""
    counts = len(qrels.topics), len(qrels), qrels.distinct_grades
    return QrelsFacts(qrels.name, qrels.where, qrels.sha256, *counts, qrels.chosen_by, qrels.origin)


def refuse_foreign(judged: Judged) -> None:
    """Refuse a run that has no topic in common with the qrels: every number would be 0."""
    if judged.present.any():
        return
    theirs = f"its first topic is {judged.extra[0]!r}" if judged.extra else "it has no topics"
    raise InputError(
        f"the run has no topic in common with the qrels: {theirs}, that of the qrels {judged.query_ids[0]!r}",
        fix="check that both files use the same query ids",
        path=judged.run.where,
    )


def versions() -> dict[str, str]:
    """Give the versions of judged, Python and the libraries that compute."""
    import pyarrow as pa

    import judged

    return {
        "judged": judged.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }
