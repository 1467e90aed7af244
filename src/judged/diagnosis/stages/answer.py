"""What a system lost by its stages, as an answer; and what it lost on one topic."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison import Choices
from judged.comparison.slicing.comparison import difference_title
from judged.comparison.slicing.parts import ValuePair, topic_subsets
from judged.diagnosis.changes import SMALL, changes_table, compared, lost_table, told_by_slice, who_lost
from judged.diagnosis.stages.trace import PARTS, SCORE, SHORT, VERDICTS, TopicLoss, large_parts, parts_by_slice
from judged.errors import InputError
from judged.results import Answer, Chart, Column, Sentences, Show, Table
from judged.results.charts import PALETTE
from judged.results.decimals import counted, decimal, percent
from judged.results.table import CHANGE, COUNT, NUMBER, SHARE, TEXT, columns_of, significant
from judged.results.types import cached_property
from judged.stats.classical import SECOND
from judged.stats.correction import losers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.diagnosis.changes import Change
    from judged.diagnosis.stages.trace import Cut, Parts, Trace
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats
    from judged.scoring.evaluation.facts import Provenance
    from judged.scoring.measures.base import Measure
    from judged.stats.correction import Discoveries

_FOREIGN = 0.1  # of the final ranking's documents: with more, it was not made of the candidates
_BARS = 200  # topics that are drawn: those that lose most
_COLOURS = (PALETTE[0], PALETTE[4], PALETTE[1], PALETTE[3])  # of the score, and of the losses, the last part first
_VERDICT = Show(lambda verdict: SHORT.get(verdict) or verdict, "string")


@dataclass(frozen=True, eq=False, repr=False)
class Stages(Answer):
    """What a system lost, split exactly into its stages; and the same for a second one that it is held against.

    Attributes
    ----------
    measure, recall : Measure
        Of the score, and of the candidates.
    query_ids : tuple of T str
    trace : Trace
        The system: scores, what was attainable behind each stage, documents.
    baseline : Trace or None
        The system that it is compared with.
    choices : Cut
        Depth, thresholds, rates, alpha, resamples, seed.
    provenance : Provenance
        Judgments, runs and policies.
    slicing : Slicing or None
    notes : tuple of Note

    Examples
    --------
    >>> from judged import stages
    >>> qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
    >>> run = {"q1": ["a"], "q2": ["x", "y", "a"], "q3": ["x"]}
    >>> found = stages(qrels, run, measure="RR@10", cutoff=2)
    >>> found.trace.parts.tolist()  # candidates and ranking, by topic
    [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    >>> found.verdicts
    ('little lost', 'not found', 'not found')
    """

    kind: ClassVar[str] = "stages"

    measure: Measure
    recall: Measure
    query_ids: tuple[str, ...]
    trace: Trace
    baseline: Trace | None
    choices: Cut
    provenance: Provenance
    slicing: Slicing | None = None
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is lost by whom."""
        return f"{' and '.join(trace.name for trace in self.traces)}: where {self.measure} is lost"

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The system, and the one that it is compared with."""
        return (self.trace,) if self.baseline is None else (self.trace, self.baseline)

    @cached_property
    def rows(self) -> tuple[Parts, ...]:
        """Means and verdicts over all topics, and then over each slice: each of the system, then of the other one."""
        every = [parts_by_slice(trace, self.measure, self.slicing, self.choices) for trace in self.traces]
        return tuple(part for parts in zip(*every, strict=True) for part in parts)

    @property
    def parts(self) -> tuple[Parts, ...]:
        """Those of the system alone."""
        return self.rows[:: len(self.traces)]

    @property
    def verdicts(self) -> tuple[str, ...]:
        """One a topic: little lost, not found, found but ranked badly, both, or nothing relevant; T of them."""
        return self.trace.verdicts(self.choices)

    @property
    def headroom(self) -> Parts:
        """Over all topics; its last part is what the best possible order of the candidates would gain."""
        return self.rows[0]

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The tested difference of the score and of each part, over all topics and by slice; higher is better."""
        if self.baseline is None:
            return ()
        trace, baseline, choices = self.trace, self.baseline, self.choices
        reach = self.measure.properties.reach
        quantities = {(trace.name, SCORE): ValuePair(baseline.score, trace.score, family=SCORE, reach=reach)}
        for name, before, now in zip(PARTS, baseline.parts, trace.parts, strict=True):
            quantities[trace.name, name] = ValuePair(-before, -now, family="parts", reach=reach)
        how = Choices(alpha=choices.alpha, resamples=choices.resamples, seed=choices.seed)
        return compared(quantities, topic_subsets(len(trace.score), self.slicing), how)

    @cached_property
    def lost(self) -> dict[str, Discoveries]:
        """By part: the topics that lost there against the other system, with a declared rate of false findings."""
        best = np.stack([trace.best for trace in self.traces])
        scale = float(np.nanmax(np.abs(best), initial=1.0))
        return {name: losers(gains, self.choices.fdr, scale=scale) for name, gains in self._gains.items()}

    @property
    def _gains(self) -> dict[str, Floats]:
        """By part: how much better each topic is than by the other system."""
        if self.baseline is None:
            return {}
        parts = self.baseline.parts - self.trace.parts
        return {SCORE: self.trace.score - self.baseline.score, **dict(zip(PARTS, parts, strict=True))}

    @property
    def lost_kinds(self) -> tuple[str, ...]:
        """By which parts each topic lost that lost to the other system, at the declared rate; else empty. (T,).

        A part is named where it holds at least the chosen share of the loss.
        """
        if self.baseline is None:
            return ("",) * len(self.query_ids)
        large = large_parts(np.maximum(self.trace.parts - self.baseline.parts, 0.0), self.choices)
        return tuple(
            " and ".join(name for name, counts in zip(PARTS, row, strict=True) if counts) if lost else ""
            for row, lost in zip(large.T.tolist(), self.lost[SCORE].mask.tolist(), strict=True)
        )

    def topic(self, query_id: str, query: str = "") -> TopicLoss:
        """Give one topic: what was scored, what was lost by which part, and where each document was lost.

        Parameters
        ----------
        query_id
            The topic.
        query
            Its text, where it is to be shown.

        Raises
        ------
        InputError
            If there is no such topic.
        """
        query_id = str(query_id)
        if query_id not in self.query_ids:
            raise InputError(f"no topic {query_id!r} here", fix=f"use one of {', '.join(self.query_ids[:5])}, ...")
        return TopicLoss(self, query_id, query, self.provenance, self.notes)

    def facts(self) -> dict[str, Any]:
        """Give measures, names and choices."""
        return {
            "measure": self.measure,
            "recall": self.recall,
            "systems": [trace.name for trace in self.traces],
            "parts": PARTS,
            "choices": vars(self.choices),
        }

    def blocks(self) -> tuple[Block, ...]:
        """Give slices, what changed, what may be concluded, and every topic."""
        return (
            *self._slices(),
            *self._changes(),
            Sentences(self.sentences),
            self._chart_of_slices(),
            self.topics_table(),
            self._chart_of_topics(),
            self.documents_table(),
        )

    def _slices(self) -> tuple[Table, Table]:
        """Lay out one row per slice and system: means, and how many topics have which verdict."""
        rows, labels = self.rows, len(self.traces)
        few = [SMALL if row.small else "" for row in rows]
        names = columns_of(rows, ("slice", TEXT), ("system", TEXT) if self.baseline else "system")
        columns = [*names, *columns_of(rows, ("n", COUNT), "small")]
        titles = {"score": str(self.measure), "best": "best", "recall": self._recall_title}
        titles |= {f"lost_{name}": f"lost: {name}" for name in PARTS}
        for at, (name, title) in enumerate(titles.items()):
            means = [row.means[at] for row in rows]
            column = Column(name, [mean.value for mean in means], NUMBER, title, ci=[mean.ci for mean in means])
            if name in {"score", "recall"}:  # people see them without intervals
                columns.append(replace(column, ci=None, only="people"))
            columns.append(column if at > 2 else replace(column, only="data"))
        counts = columns_of(
            [row.verdicts for row in rows], *((name, COUNT, SHORT.get(name, name)) for name in VERDICTS)
        )
        columns += [replace(column, only="data") for column in counts]
        note = f"{self._over}; [{self.choices.interval.words}]"
        note += f"; {SMALL}: too few topics to be judged by" if any(few) else ""
        return (
            Table("slices", tuple(columns), note=note, labels=labels).changed("n", beside=few),
            Table("verdicts", (*names, *counts), labels=labels, only="people"),
        )

    @property
    def _over(self) -> str:
        return f"over {counted(len(self.query_ids), 'topic')}; candidates: first {self.choices.cutoff}"

    @property
    def _recall_title(self) -> str:
        """The measure of the candidates, told from that of the ranking where it is the same."""
        return f"{self.recall} of candidates" if str(self.recall) == str(self.measure) else str(self.recall)

    def _changes(self) -> Iterator[Table]:
        """Lay out one row per slice and part: the change of the score, and of each part; and the topics that lost."""
        if self.baseline is None:
            return
        first, second, choices = self.trace.name, self.baseline.name, self.choices
        note = (
            f"{first} minus {second}, parts add up to the change of {self.measure}; paired randomisation test,"
            f" {choices.resamples} resamples, seed {choices.seed}{SECOND if self.slicing else ''}; p by Holm: over the"
            " parts for all topics, over slices and parts below; intervals are as wide as the correction asks; * p up"
            f" to {choices.alpha:g}"
        )
        part = Show(lambda name: str(self.measure) if name == SCORE else name, "string")
        yield changes_table(self.changes, difference_title(first, second), note, part, runs=False)
        yield lost_table(((first, name, lost) for name, lost in self.lost.items()), self.query_ids)

    def topics_table(self) -> Table:
        """Lay out one row per topic, the largest loss first; with another system the largest loss against it."""
        trace, change = self.trace, np.zeros(len(self.query_ids))
        columns = [Column("query_id", self.query_ids, TEXT, "topic"), *self._of_topics(trace)]
        if self.baseline is not None:
            columns += [
                replace(column, name=f"other_{column.name}", only="data") for column in self._of_topics(self.baseline)
            ]
        for name, gains in self._gains.items():
            stars = ["*" if lost else "" for lost in self.lost[name].mask.tolist()]
            title = "change" if name == SCORE else f"by {name}"
            columns.append(Column(f"change_{name}", gains.tolist(), CHANGE, title, mark=stars))
            change = gains if name == SCORE else change
        order = np.lexsort((trace.score - trace.best, np.nan_to_num(change)))
        return Table("topics", tuple(columns), labels=2, folded=True).take(order.tolist())

    def _of_topics(self, trace: Trace) -> Iterator[Column]:
        yield Column("system", [trace.name] * len(trace.score), TEXT, only="data")
        yield Column("verdict", trace.verdicts(self.choices), _VERDICT)
        yield Column("score", trace.score.tolist(), NUMBER, str(self.measure))
        yield Column("best", trace.best.tolist(), NUMBER)
        yield Column("attainable_candidates", trace.attainable.tolist(), NUMBER, only="data")
        yield Column("recall", trace.recall.tolist(), NUMBER, self._recall_title)
        yield Column("found", trace.found.tolist(), COUNT, beside=[f"of {count}" for count in trace.relevant.tolist()])
        yield Column("relevant", trace.relevant.tolist(), COUNT, only="data")
        for name, part in zip(PARTS, trace.parts.tolist(), strict=True):
            yield Column(f"lost_{name}", part, NUMBER, f"lost: {name}", only="data" if self.baseline else "")
        yield Column("judged", trace.judged.tolist(), SHARE)
        yield Column("foreign", trace.foreign.tolist(), COUNT, only="data")

    def documents_table(self) -> Table:
        """Lay out the relevant documents that are not on the page, or not returned: where each was lost."""
        cutoff = getattr(self.measure, "cutoff", None)
        page = cutoff if isinstance(cutoff, int) else math.inf
        rows: list[dict[str, Any]] = []
        for trace in self.traces:
            every = trace.documents
            ways = {
                "not returned": every.candidate == 0,
                "below the cutoff": every.candidate > self.choices.cutoff,
                "ranked low": every.final > 0,
            }
            where = np.select(list(ways.values()), list(ways), "dropped").tolist()
            rows += [
                {
                    "system": trace.name,
                    "query_id": self.query_ids[every.topic[at]],
                    "doc_id": every.doc[at],
                    "grade": every.grade[at],
                    "lost": where[at],
                    "candidate_rank": int(every.candidate[at]) or None,
                    "final_rank": int(every.final[at]) or None,
                }
                for at in np.flatnonzero((every.final == 0) | (every.final > page)).tolist()
            ]
        system = ("system", TEXT) if self.baseline else "system"
        named = (("query_id", TEXT), ("doc_id", TEXT), ("grade", significant()), ("lost", TEXT))
        columns = columns_of(rows, system, *named, ("candidate_rank", COUNT), ("final_rank", COUNT))
        return Table("documents", columns, labels=1 + len(self.traces), only="data")

    def _chart_of_slices(self) -> Chart:
        """Draw a bar per slice and system."""
        bars: list[tuple[str, str, list[float]]] = []
        for row in self.rows:
            label = f"{row.slice} (n {row.n}{', few' if row.small else ''})"
            counts = ", ".join(f"{count} {verdict}" for verdict, count in row.verdicts.items() if count)
            sizes = [mean.value for mean in (row.score, *row.losses[::-1])]
            bars.append((f"{label}: {row.system}" if self.baseline else label, counts, sizes))
        return self._chart("slices", self.title, f"mean {self.measure}", bars)

    def _chart_of_topics(self) -> Chart:
        """Draw a bar per topic, the largest loss first."""
        trace = self.trace
        sizes = np.stack([trace.score, *trace.parts[::-1]]).T.tolist()
        bars = list(zip(self.query_ids, self.verdicts, sizes, strict=True))
        order = np.argsort(trace.score - trace.best, kind="stable").tolist()
        title = f"{trace.name}: where {self.measure} is lost, by topic"
        title += f", the {_BARS} that lose most" if len(bars) > _BARS else ""
        return self._chart("topics", title, f"{self.measure} of {trace.name}", [bars[at] for at in order[:_BARS]])

    def _chart(self, name: str, title: str, score: str, bars: Sequence[tuple[str, str, list[float]]]) -> Chart:
        """Put score and losses one behind the other: score, then ranking, then candidates, which ends at the best."""
        kinds = [str(self.measure), *(f"lost: {part}" for part in reversed(PARTS))]
        rows = [
            {"bar": label, "part": kind, "start": start, "end": start + size, "size": size, "topics": said}
            for label, said, sizes in bars
            for kind, size, start in zip(kinds, sizes, np.cumsum([0.0, *sizes[:-1]]).tolist(), strict=True)
            if size and not math.isnan(size)
        ]
        ends = (("start", NUMBER), ("end", NUMBER), ("size", NUMBER))
        columns = columns_of(rows, ("bar", TEXT), ("part", TEXT), *ends, ("topics", TEXT))
        across = f"{score}, and what is lost of the best"
        return Chart(
            name,
            title,
            Table(name, columns),
            f"{across}.",
            "bars",
            x="start",
            x2="end",
            y="bar",
            x_title=across,
            colour="part",
            colours=dict(zip(kinds, _COLOURS, strict=False)),
            width=480,
            subtitle=self._over,
            folded=name == "topics",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What each system lost where, and what changed between the two."""
        return (*self._of_change(), *self._of_system())

    @property
    def headline(self) -> str:
        """What the system scores and loses in one sentence; empty where there is nothing to lose."""
        whole = self.headroom
        if not whole.n or whole.barren:
            return ""
        candidates, ranking = whole.losses[0].text(), whole.losses[-1].text()
        return (
            f"{self.trace.name} scores {decimal(whole.score.value)} in {self.measure}, where"
            f" {decimal(whole.best.value)} could be attained: {candidates} is lost because relevant documents are not"
            f" among its first {self.choices.cutoff} candidates, {ranking} because the candidates are not in their best"
            " order."
        )

    def _of_system(self) -> Iterator[str]:
        """Say what the system lost by which part."""
        name, measure, cutoff = self.trace.name, self.measure, self.choices.cutoff
        whole, foreign = self.headroom, self.trace.foreign_share
        if not whole.n:
            yield f"{measure} leaves out every topic: there is nothing to say of {name}."
            return
        if whole.barren:
            yield "No topic has a relevant document: nothing can be lost."
            return
        if foreign >= _FOREIGN:
            yield (
                f"{name} is not a ranking of these candidates: {percent(foreign)} of its documents are not among the"
                f" first {cutoff} of {self.trace.candidates}. So losses of candidates and of ranking do not add"
                " up to its loss."
            )
        yield self.headline
        ranking = whole.losses[-1]
        if ranking.value > 0 and foreign < _FOREIGN:
            yield (
                f"The best order of these candidates would score {decimal(whole.score.value + ranking.value)}: no"
                f" reranker of the first {cutoff} of {self.trace.candidates} can gain more than"
                f" {decimal(ranking.value)}."
            )
        counts = ", ".join(f"{verdict} {count}" for verdict, count in whole.verdicts.items() if count)
        yield (
            f"Topics of {name}: {counts} (a part counts from {self.choices.least:.0%} of the topic's best score and"
            f" {self.choices.share:.0%} of its loss on)."
        )

    def _of_change(self) -> Iterator[str]:
        """Say what changed between the two systems, over all topics, by slice and topic."""
        if self.baseline is None:
            return
        score, *whole = (change for change in self.changes if change.every)
        yield self._whole_change(score, whole)
        if any(change.significant for change in whole) and whole[0].result.difference * whole[-1].result.difference < 0:
            yield (
                "The parts move against each other: where less is found, less is left to be ranked badly, so such a"
                " gain by ranking need not be a better ranker (nor such a loss a worse one)."
            )
        parts = [change for change in self.changes if change.part != SCORE]
        for told in told_by_slice(parts, sum(change.by_slice for change in parts)):
            yield f"{self.trace.name} {told}"
        if small := {change.slice for change in self.changes if change.small}:
            yield f"Too few topics to be tested: {', '.join(sorted(small))}."
        kinds = Counter(kind for kind in self.lost_kinds if kind).most_common()
        for name, lost in self.lost.items():
            by_kind = "".join(f"; {count} by {kind}" for kind, count in kinds) if name == SCORE else ""
            of = str(self.measure) if name == SCORE else f"{name} alone"
            yield f"{self.trace.name} by {of}: {who_lost(lost, self.query_ids)}{by_kind}."

    def _whole_change(self, score: Change, parts: list[Change]) -> str:
        first, second = (trace.name for trace in self.traces)
        if score.result.n < 2:
            return "There are too few topics to test what changed."
        if not any(change.result.difference for change in (score, *parts)):
            return f"{first} and {second} score the same in {self.measure}, and lose it in the same parts."
        way = "lower" if score.result.difference < 0 else "higher"
        told = " and ".join(change.told(f" by {change.part}") for change in parts)
        size = decimal(abs(score.result.difference))
        return f"{first} scores {size} {way} than {second} in {self.measure} ({score.p}): {told}."
