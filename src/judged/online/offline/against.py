"""`against_qrels`: whether judgments predict what users do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.online.arguments import need
from judged.online.offline.answer import OfflineOnline
from judged.online.offline.joined import joined_pages, keyed
from judged.online.offline.page_scores import outcomes_of, page_outcomes, page_scores
from judged.online.offline.pages import rests_on
from judged.online.offline.relations import Compared, calibration, relation, topic_relation
from judged.scoring.evaluation.inputs import measures_of
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats
    from judged.online.log import InteractionLog
    from judged.online.offline.joined import Joined, Unit, Which
    from judged.online.offline.page_scores import Outcome

DEFAULT_MEASURES = ("nDCG@10", "P@10", "RR")
JUDGED_AT = 10
"""So deep a page is looked at for how much of it is judged."""


def against_qrels(
    log: InteractionLog,
    qrels: Any,
    *,
    measures: Any = DEFAULT_MEASURES,
    outcomes: Sequence[str] | str | None = None,
    topics: Any = None,
    by: str | None = None,
    pages: Which = "first",
    dwell: float = 30.0,
    least_judged: float = 0.8,
    bins: int = 5,
    least_pages: int = 3,
    unit: Unit = "user",
    level: float = 0.95,
) -> OfflineOnline:
    """Score the lists that users saw by judgments, and see whether better scores go with better outcomes.

    Parameters
    ----------
    log
        What users did.
    qrels
        Judgments: a `Qrels`, or anything that `Qrels.of` and `Qrels.read` take.
    measures
        Measures or names, one or several.
    outcomes
        Of ``satisfied``, ``clicked``, ``first click RR``, ``best click RR``, ``opened``, ``abandoned``,
        ``reformulated``. None: the first three, as far as the log can tell them.
    topics
        How a page finds its topic: the name of a column of the log; or the texts of topics (`Topics`, a path, ``{id:
        text}``), which are compared with what was typed. None: the column ``topic``, or else ``query_id``.
    by
        A column of `log.serp` to slice by.
    pages
        ``first``: of each result list only its first page. ``all``: later pages too, each as a ranking of its own.
    dwell
        Seconds that make an opened result satisfying.
    least_judged
        A page counts if at least this share of its first 10 results is judged; the others are reported.
    bins
        Of the calibration.
    least_pages
        A topic counts among topics if it has so many pages.
    unit
        Whose pages are not independent: ``user`` or ``session``.
    level
        Of the intervals.

    Returns
    -------
    OfflineOnline

    Raises
    ------
    InputError
        If the judgments cannot be read, an option makes no sense, or no page has a judged topic.
    MeasureError
        If a measure does not exist, or is neither better high nor low.

    Notes
    -----
    Clicks stop at what was shown, and lean towards the top whatever stands there: a measure that predicts clicks need
    not predict satisfaction. What was shown was made by some ranker: where all pages are alike, nothing can correlate.

    Intervals are made of what each unit adds to an error (`judged.online.offline.concordance`), and so allow for other
    users or sessions with pages on these topics: topics are not drawn anew, and others may tell something else. Only
    the interval of Spearman's rho takes the topics for a sample.
    """
    need(log=log, by=by, pages=pages, unit=unit, level=level, dwell=dwell)
    need(measures=measures, least_judged=least_judged, bins=bins, least_pages=least_pages)
    judgments = Qrels.read(qrels) if isinstance(qrels, (str, Path)) else Qrels.of(qrels)
    wanted, looked_at = measures_of(measures), outcomes_of(outcomes, log)
    if neither := [one for one in wanted if one.properties.higher_is_better is None]:
        raise MeasureError(f"{neither[0]} is neither better high nor low. Fix: take another, such as nDCG@10")
    joined = joined_pages(log, judgments, topics, by=by, unit=unit, which=pages)
    share = parse(f"Judged@{JUDGED_AT}")
    scores = page_scores(log, joined, judgments, [share, *wanted])
    enough = scores[0] >= least_judged - 1e-12
    if not enough.any():
        problem = f"no page has {least_judged:.0%} of its first {JUDGED_AT} results judged"
        raise InputError(problem, fix="judge more of what is shown, or lower least_judged")
    joined = joined.of(enough, f"under {least_judged:.0%} of the first {JUDGED_AT} results judged")
    scores = scores[:, enough]
    values = _outcomes(log, joined, looked_at, dwell)
    index = judgments.index
    relevant = np.bincount(index.topic[index.grade > 0], minlength=len(index.topics))
    compared = [
        Compared(str(measure), outcome.name, scores[at + 1], values[to],
                 (1 if measure.properties.higher_is_better else -1, outcome.better), joined.unit, joined.topic,
                 joined.slices, outcome.share)
        for at, measure in enumerate(wanted) for to, outcome in enumerate(looked_at)
    ]  # fmt: skip
    compared = [one.over(~np.isnan(one.score)) for one in compared]
    relations = [relation(one, None, level) for one in compared]
    for at, name in enumerate(joined.values):
        relations += [relation(one.over(one.slice == at), name, level) for one in compared]
    by_topic = [topic_relation(one, least_pages, level) for one in compared]
    return OfflineOnline(
        **rests_on(log, judgments, joined, by, unit, level),
        judged=float(scores[0].mean()),
        judged_at=JUDGED_AT,
        least_judged=least_judged,
        hopeless=int((relevant[joined.topic] == 0).sum()),
        measures=tuple(str(one) for one in wanted),
        outcomes=tuple(one.name for one in looked_at),
        meanings=tuple(one.title.format(t=f"{dwell:g}") for one in looked_at),
        worse=tuple(one.name for one in looked_at if one.better < 0),
        least_pages=least_pages,
        relations=tuple(relations),
        calibration=tuple(one for pair in compared for one in calibration(pair, bins, level)),
        topics=tuple(one for one in by_topic if one is not None),
    )


def _outcomes(log: InteractionLog, joined: Joined, outcomes: Sequence[Outcome], dwell: float) -> Floats:
    """Fetch the outcomes of these pages: (O, N)."""
    with log.engine.scratch():
        made, pages = page_outcomes(log, outcomes, dwell), keyed(log, joined.serp, joined.topic)
        table = log.engine.arrow(f"SELECT o.* FROM {made} AS o JOIN {pages} AS p ON p.serp = o.serp ORDER BY p.page")
    return np.stack([table[f"outcome_{at}"].to_numpy() for at in range(len(outcomes))]).astype(np.float64)
