"""The questions of a review: what each needs, what was found, and how it is filled in where nothing was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.diagnosis.gates.guardrails import lost_topics, numbers_by_run
from judged.errors import InputError
from judged.reports.material import quoted, shortened
from judged.results import CHANGE, COUNT, NUMBER, SHARE, TEXT, Column, Table, counted, listed
from judged.results.decimals import decimal
from judged.stats.counts import share_limits
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from pathlib import Path

    from judged.comparison import Comparison
    from judged.comparison.pair import Pair
    from judged.comparison.slicing.comparison import SliceComparison
    from judged.data.topics import Topics
    from judged.diagnosis.disagreement.answer import Disagreement
    from judged.diagnosis.gates import GateResult
    from judged.online.abtest.abtest import ABTest
    from judged.online.abtest.verdict import Verdict
    from judged.online.interleaving.analysis import Interleaving
    from judged.online.watch.watch import Watch
    from judged.results import Block
    from judged.scoring.evaluation import Scores

State: TypeAlias = Literal["good", "bad", "undecided", "look", "not tested", "blank"]
_WORST = 5


@dataclass(frozen=True)
class Question:
    """One row of the sheet.

    ``state``: ``good`` and ``bad`` are answers; ``undecided``: a test shows neither; ``look``: there is something to
    look at; ``not tested``: the data do not support a test, so that nothing is known; ``blank``: nothing was given.
    ``said``: what was found, or why nothing was tested, or, of a blank, the option that fills it.
    """

    question: str
    state: State
    said: str
    blocks: tuple[Block, ...] = ()


def is_better(compared: Comparison) -> Iterator[Question]:
    """Say of the first measure whether the candidate is better, and of all what they differ by."""
    pairs = [pair for measure in compared.measures for pair in measure.pairs]
    first = pairs[0]
    state: State = "undecided" if not first.significant else "good" if first.better == first.second else "bad"
    said = first.sentence
    if lacking := insufficiency(first.result.n, "verdict"):
        state, said = "not tested", f"{lacking.sentence('topic')} {_difference(first)}"
    table = quoted(compared.pair_table(), "measures", title="All measures")
    yield Question("Is it better?", state, said, (table,))


def _difference(pair: Pair) -> str:
    return f"{pair.second} - {pair.first}: {decimal(pair.result.difference, 4, '+')}."


def worst(scores: Scores, topics: Topics | None) -> Question:
    """Name the topics that lost most: to look at first."""
    gains = scores.values[1, 0] - scores.values[0, 0]
    lower = scores.measures[0].properties.higher_is_better is False
    gains = -gains if lower else gains
    order = [int(at) for at in np.argsort(gains, kind="stable")[:_WORST] if gains[at] < 0]
    measure = scores.measure_names[0]
    if not order:
        return Question("What to look at first?", "good", f"No topic loses {measure}.")
    ids = [scores.query_ids[at] for at in order]
    table = Table(
        "losses",
        (
            Column("query_id", ids, TEXT, "topic"),
            Column("query", [shortened(topics.text(one) or "", 60) if topics else "" for one in ids], TEXT),
            *(
                Column(role, [float(scores.values[run, 0, at]) for at in order], NUMBER, scores.run_names[run])
                for run, role in enumerate(("baseline", "candidate"))
            ),
            Column("difference", [float(scores.values[1, 0, at] - scores.values[0, 0, at]) for at in order], CHANGE),
        ),
        f"Topics that lose most {measure}",
    )
    said = f"{int((gains < 0).sum())} of {counted(len(gains), 'topic')} lose {measure}, most of all {listed(ids)}."
    return Question("What to look at first?", "look", said, (table,))


def slices(found: SliceComparison) -> Question:
    """Say which slices improved and which paid, after correction."""
    tested = [row for row in found.of() if row.pair and not insufficiency(row.pair.result.n, "verdict")]
    rows = [row for row in tested if row.better]
    better = [row.slice for row in rows if row.better == row.second]
    worse = [row.slice for row in rows if row.better == row.first]
    said = [f"{what}: {listed(names)}." for what, names in (("Improved", better), ("Paid", worse)) if names]
    state: State = "bad" if worse else "good" if better else "undecided"
    shown = " ".join(said) or f"No slice is shown to ({counted(len(tested), 'slice')} tested)."
    if not tested:
        state, shown = "not tested", "No slice has enough topics to be tested."
    table = quoted(found.overview(), "slices", title="By slice")
    return Question("Which slice improved, which paid?", state, shown, (table,))


def disagreement(found: Disagreement) -> Question:
    """Say whether two measures prefer different systems, over all topics and by class."""
    first, second = found.means
    apart = first.side * second.side < 0
    return Question("Do measures agree?", "look" if apart else "good", " ".join(found.sentences[:1]))


def costs(path: Path, names: Sequence[str], columns: Sequence[str]) -> Question:
    """Set costs of both runs side by side: the mean of each column of a table of runs."""
    means = {
        column: [float(np.mean(known.get(name, known.get(role, [np.nan]))))
                 for name, role in zip(names, ("baseline", "candidate"), strict=True)]
        for column in columns
        for known in [numbers_by_run(path, column)]
    }  # fmt: skip
    if unknown := [column for column, both in means.items() if not np.isfinite(both).all()]:
        fix = f"name {listed(names)} in its column run, or baseline and candidate"
        raise InputError(f"{listed(unknown)} of a run is not there", fix=fix, path=str(path))
    rises = [column for column, (old, new) in means.items() if new > old]
    table = Table(
        "costs",
        (
            Column("cost", list(means), TEXT),
            Column("baseline", [old for old, _ in means.values()], NUMBER),
            Column("candidate", [new for _, new in means.values()], NUMBER),
            Column("relative", [new / old - 1 if old else np.nan for old, new in means.values()], SHARE, "change"),
        ),
        "Costs",
        note="means over the rows of a run, as they stand: nothing is tested",
    )
    said = f"{listed(rises)} {'rises' if len(rises) == 1 else 'rise'}." if rises else "No cost rises."
    return Question("Which cost rises?", "bad" if rises else "good", said, (table,))


def false_positives(path: Path, names: Sequence[str]) -> Question:
    """Set the shares of reviewed results that were wrong side by side."""
    wrong, reviewed = (numbers_by_run(path, column) for column in ("wrong", "reviewed"))
    counts = [
        tuple(int(sum(known.get(name, known.get(role, [])))) for known in (wrong, reviewed))
        for name, role in zip(names, ("baseline", "candidate"), strict=True)
    ]
    if not all(0 <= bad <= of and of > 0 for bad, of in counts):
        fix = f"name {listed(names)} in its column run, and give 0 <= wrong <= reviewed"
        raise InputError("no number of reviewed results, or more wrong than reviewed", fix=fix, path=str(path))
    bad, sizes = (np.array([one[side] for one in counts], dtype=np.int64) for side in (0, 1))
    low, high = share_limits(bad, sizes, 0.95)
    shares = [one / of if of else np.nan for one, of in counts]
    state: State = "bad" if low[1] > high[0] else "good" if high[1] < low[0] else "undecided"
    lacking = insufficiency(min(of for _, of in counts), "verdict")
    state = "not tested" if lacking else state
    table = Table(
        "false_positives",
        (
            Column("run", list(names), TEXT),
            Column("wrong", bad.tolist(), COUNT),
            Column("reviewed", sizes.tolist(), COUNT),
            Column(
                "share",
                shares,
                SHARE,
                ci=[
                    None if insufficiency(of) else (least, most)
                    for (_, of), least, most in zip(counts, low.tolist(), high.tolist(), strict=True)
                ],
            ),
        ),
        "False positives in review",
        note="95% intervals of each share; state by whether they overlap, which is cautious",
    )
    said = f"{bad[1]} of {sizes[1]}, was {bad[0]} of {sizes[0]}."
    said += f" {lacking.sentence('reviewed result')}" if lacking else ""
    return Question("Are fewer results wrong in review?", state, said, (table,))


def nothing_found(scores: Scores) -> Question:
    """Say for how many topics each run returns nothing."""
    lost = lost_topics(scores, [0, 1])
    said = f"Nothing is returned any more for {listed(lost)}." if lost else "No topic lost all its results."
    return Question("Are there more queries without results?", "bad" if lost else "good", said)


def gated(found: GateResult) -> Question:
    """Give the gate's decision."""
    states: Mapping[str, State] = {"pass": "good", "fail": "bad"}
    table = quoted(found.table("checks"), "gate", title="Gate")
    return Question("Does the gate let it pass?", states.get(found.status, "undecided"), found.verdict, (table,))


def tested(found: ABTest, verdict: Verdict) -> Question:
    """Give the verdict of the A/B test of the candidate's arm."""
    states: Mapping[str, State] = {"ship": "good", "do not ship": "bad", "broken": "bad"}
    table = quoted(found.table("differences"), "users", title="What differs for users")
    return Question("Do users fare better?", states.get(verdict.decision, "undecided"), str(verdict), (table,))


def preferred(found: Interleaving) -> Question:
    """Give what mixed lists say."""
    states: Mapping[str, State] = {"preferred": "good", "not preferred": "bad"}
    said = f"{found.other}: {found.decision}. {' '.join(found.reasons)}"
    table = quoted(found.table("preferences"), "preferences", title="What clicks prefer in mixed lists")
    return Question("Do users prefer it in one list?", states.get(found.decision, "undecided"), said, (table,))


def rolled_back(found: Watch) -> Question:
    """Say of the last deployment whether it should be taken back."""
    question = "Should it be taken back?"
    if not found.rollbacks:
        return Question(question, "blank", "Name the deployment in the watch's file: [[event]], deploy = true.")
    last = found.rollbacks[-1]
    states: Mapping[str, State] = {"roll back": "bad", "keep": "good"}
    table = quoted(found.table("deployments"), "deployments", title="Deployments")
    return Question(question, states.get(last.decision, "undecided"), str(last), (table,))
