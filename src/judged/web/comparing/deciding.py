"""The topics that decide: what leaving out single ones would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.decimals import p_text
from judged.stats.robustness import leave_one_topic_out

if TYPE_CHECKING:
    from judged.stats.robustness import LeaveOneTopicOut
    from judged.web.comparing.two import Two
    from judged.web.workspace import Workspace

MOST = 300
"""Topics: the test is done again without each of them, which takes too long for more."""
_SHOWN, _LISTED = 5, 10
_METHOD = "t"  # the same numbers give the same answer, so what changes is due to the topic that is left out


@dataclass(frozen=True)
class Decider:
    """One topic, and what the comparison would be without it."""

    query_id: str
    query: str
    difference: float  # second minus first, on this topic
    without: float  # the mean difference over the other topics
    p: float  # of the t-test over the other topics, not corrected
    changes: str  # `sign` or `significance`, or both; empty where the answer stays


@dataclass(frozen=True)
class Deciding:
    """What rests on single topics."""

    sentence: str  # in words; where nothing could be tried, why
    how: str = ""  # by which test, and what it says of all topics
    # the least number of topics whose removal leaves no difference, or one of the other sign
    to_reverse: int | None = None
    # those without which the answer changes, ten at most; else those that move the mean most, five at most
    topics: tuple[Decider, ...] = ()


def deciding(workspace: Workspace, two: Two) -> Deciding:
    """Leave each topic out, where there are not too many, and say what that changes."""
    if two.pair is None or two.pair.is_ratio:
        return Deciding(f"{two.measure} is no arithmetic mean: how much of it a topic carries is not asked here.")
    if two.pair.found.n > MOST:
        return Deciding(
            f"{two.pair.found.n:,} topics are too many to leave each of them out: that is done for up to {MOST}."
            f" Choose fewer with an expression. {two.pair.topics_sentence}"
        )
    made: Deciding = workspace.remember((*two.key, "deciding"), lambda: _made(workspace, two))
    return made


def _made(workspace: Workspace, two: Two) -> Deciding:
    found = leave_one_topic_out(*two.values, method=_METHOD, alpha=two.comparison.choices.alpha)
    topics = tuple(_decider(workspace, two, found, at) for at in _chosen(found))
    p = f"p {p_text(found.p, found.alpha)} over all topics"
    return Deciding(found.sentence, f"By a paired t-test of {two.measure} alone: {p}.", found.to_reverse, topics)


def _chosen(found: LeaveOneTopicOut) -> list[int]:
    """Choose topics, by their place among those that were left out; those that move the mean most come first."""
    moved = np.abs(np.array(found.differences) - found.difference)
    order = np.argsort(-moved, kind="stable").tolist()
    moving = [at for at in order if moved[at] > 0]
    rests = {*found.sign_rests_on, *found.significance_rests_on}
    decide = [at for at in order if found.topics[at] in rests]
    return decide[:_LISTED] or moving[:_SHOWN]


def _decider(workspace: Workspace, two: Two, found: LeaveOneTopicOut, at: int) -> Decider:
    topic = found.topics[at]
    query_id = two.query_ids[topic]
    changed = (("sign", found.sign_rests_on), ("significance", found.significance_rests_on))
    return Decider(
        query_id=query_id,
        query=workspace.query(query_id),
        difference=float(two.differences[topic]),
        without=found.differences[at],
        p=found.p_values[at],
        changes=" and ".join(name for name, those in changed if topic in those),
    )
