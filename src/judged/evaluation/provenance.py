"""What numbers rest on: judgments, runs, policies and versions; the same head in every document, whoever computed."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data.compute import distinct
from judged.errors import InputError
from judged.evaluation.facts import Policies, QrelsFacts, RunFacts
from judged.evaluation.notes import list_notes, qrels_notes, run_notes, unjudged_notes
from judged.notes import lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.data import Qrels
    from judged.evaluation.score_table import ScoreTable
    from judged.judging import Judged, TopicPolicy
    from judged.measures import Measure
    from judged.notes import Note


@dataclass(frozen=True)
class Provenance:
    """What numbers rest on."""

    qrels: QrelsFacts
    policies: Policies
    runs: tuple[RunFacts, ...]  # with the warnings of each
    versions: Mapping[str, str]
    notes: tuple[Note, ...] = ()  # warnings about the judgments, and about the runs together

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that should be known before the numbers are used."""
        return lines(self.all_notes)

    @property
    def all_notes(self) -> tuple[Note, ...]:
        """The notes of the call and those of the runs."""
        return (*self.notes, *(note for run in self.runs for note in run.notes))

    def to_dict(self) -> dict[str, Any]:
        """Give ``judged, versions, qrels, policies, runs`` as plain Python values: the head of a document."""
        return {
            "judged": self.versions.get("judged", ""),
            "versions": dict(self.versions),
            "qrels": {**vars(self.qrels), "grades": list(self.qrels.grades)},
            "policies": dict(vars(self.policies)),
            "runs": {run.name: _facts(run) for run in self.runs},
        }


def provenance(scores: ScoreTable) -> Provenance:
    """Tell what a table of scores rests on."""
    return Provenance(scores.qrels, scores.policies, scores.runs, scores.versions, scores.notes)


def provenance_of_lists(
    lists: Sequence[Judged],
    measures: Sequence[Measure],
    *,
    topics: TopicPolicy = "qrels",
    dialect: str = "judged",
) -> Provenance:
    """Tell what judged lists of one ranking policy rest on, with the warnings that `evaluate` has for them."""
    first = lists[0]
    ranking = first.ranking
    chosen = Policies(topics, ranking.ties, ranking.depth, ranking.precision, dialect)
    notes = qrels_notes(first.qrels, measures, measures) + list_notes(lists, chosen, measures)
    runs = tuple(run_facts(one, topics) for one in lists)
    return Provenance(qrels_facts(first.qrels), chosen, runs, versions(), notes + unjudged_notes(lists))


def run_facts(judged: Judged, topics: TopicPolicy) -> RunFacts:
    """Tell what is worth knowing of a run that was judged."""
    missing = tuple(judged.query_ids[at] for at in np.flatnonzero(judged.returned == 0).tolist())
    return RunFacts(
        name=judged.run.name,
        path=judged.run.where,
        sha256=judged.run_sha256,
        returned_topics=int(np.count_nonzero(judged.returned) + np.count_nonzero(judged.extra_returned)),
        missing_topics=missing,
        extra_topics=len(judged.extra),
        returned_judged=len(judged.topic),
        notes=run_notes(judged, missing, topics),
    )


def qrels_facts(qrels: Qrels) -> QrelsFacts:
    """Tell what is worth knowing of judgments."""
    grades = tuple(distinct(qrels.grades).tolist())
    return QrelsFacts(qrels.name, qrels.where, qrels.sha256, len(qrels.topics), len(qrels), grades)


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


def _facts(run: RunFacts) -> dict[str, Any]:
    """Lay out what is known of a run: all but its name, and of its notes their texts."""
    facts = {key: value for key, value in vars(run).items() if key not in {"name", "notes"}}
    return facts | {"missing_topics": list(run.missing_topics), "warnings": list(run.warnings)}
