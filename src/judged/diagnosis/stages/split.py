"""What a system lost by its stages, as numbers: what the forms of `stages` stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from judged.diagnosis.stages.parts import (
    SCORE,
    Cut,
    Parts,
    changes_of,
    kinds_of,
    lost_topics,
    parts_by_slice,
    verdict_names,
)

if TYPE_CHECKING:
    from judged.diagnosis.changes import Change
    from judged.diagnosis.stages.tracing import Trace
    from judged.evaluation.provenance import Provenance
    from judged.measures import Measure
    from judged.slicing.slices import Slicing
    from judged.stats.discoveries import Discoveries


@dataclass(frozen=True, eq=False)
class SplitLoss:
    """The loss of a system, or of two, split into stages: the part of a result that its forms stand on."""

    # measure, recall: of the score, and of the candidates
    measure: Measure
    recall: Measure
    query_ids: tuple[str, ...]  # T
    trace: Trace  # the system: scores, what was attainable behind each stage, documents
    against: Trace | None  # the system that it is compared with
    # P: the parts of the loss, in the order of the stages; the last is that of the final ranking
    names: tuple[str, ...]
    choices: Cut  # depth, thresholds, level, rates, resamples, seed
    provenance: Provenance = field(repr=False)  # of judgments, runs and policies
    slicing: Slicing | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> tuple[Parts, ...]:
        """Means and verdicts over all topics, and then over each slice, of the system."""
        return parts_by_slice(self.trace, self.measure, self.slicing, self.choices)

    @cached_property
    def parts_against(self) -> tuple[Parts, ...]:
        """The same of the system that it is compared with; nothing where there is none."""
        return () if self.against is None else parts_by_slice(self.against, self.measure, self.slicing, self.choices)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """One a topic: little lost, not found, found but ranked badly, both, or nothing relevant; T of them."""
        return verdict_names(self.trace, self.choices)

    @property
    def headroom(self) -> Parts:
        """Over all topics; its last part is what the best possible order of the candidates would gain."""
        return self.parts[0]

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The tested difference of the score and of each part, over all topics and by slice; higher is better."""
        return (
            () if self.against is None else changes_of(self.trace, self.against, self.names, self.slicing, self.choices)
        )

    @cached_property
    def lost(self) -> dict[str, Discoveries]:
        """By part: the topics that lost there against the other system, with a declared rate of false findings."""
        return {} if self.against is None else lost_topics(self.trace, self.against, self.names, self.choices)

    @property
    def lost_kinds(self) -> tuple[str, ...]:
        """By which parts each topic lost that lost to the other system, at the declared rate; else empty. (T,).

        A part is named where it holds at least the chosen share of the loss.
        """
        if self.against is None:
            return ("",) * len(self.query_ids)
        return kinds_of(self.trace, self.against, self.names, self.lost[SCORE].mask, self.choices)

    @property
    def systems(self) -> list[tuple[str, Trace, tuple[Parts, ...]]]:
        """Each system by the name that tables call it by; two of one name are told apart."""
        made = [(self.trace.name, self.trace, self.parts)]
        if self.against is not None:
            same = self.against.name == self.trace.name
            name = f"{self.against.name} (other)" if same else self.against.name
            made.append((name, self.against, self.parts_against))
        return made
