"""Metrics of visits: how long what was opened was looked at."""

from __future__ import annotations

from judged.online.metrics.metric import OnlineMetric
from judged.online.metrics.words import FOX, ONCE, PAGE, POSITION, SATISFIED

_VISIT = "from a click to the next sign of the user on the result pages of the session, or to the last heartbeat"
_THRESHOLD = "What is long enough depends on the task: look at the threshold curve before trusting one value."

METRICS = (
    OnlineMetric(
        "SatisfiedClicks",
        "Clicks that satisfied",
        "click",
        "satisfied_events_{t}",
        "click_events",
        "share",
        1,
        f"satisfied clicks / clicks; {SATISFIED}",
        _VISIT,
        "clicks that name the page",
        FOX,
        f"A user who gives up after a click counts as satisfied. {_THRESHOLD}",
        parameters={"t": 30.0},
        needs=("clicks", "dwell"),
    ),
    OnlineMetric(
        "DissatisfiedClicks",
        "Clicks with a quick return",
        "click",
        "dissatisfied_events_{t}",
        "click_events",
        "share",
        -1,
        "clicks whose visit was seen to end before t seconds / clicks",
        _VISIT,
        "clicks that name the page",
        "Buscher, van Elst and Dengel, Segment-level display time as implicit feedback (SIGIR 2009)",
        f"A quick look can be all that was needed. {_THRESHOLD}",
        parameters={"t": 15.0},
        needs=("clicks", "dwell"),
    ),
    OnlineMetric(
        "SatisfiedPageCTR",
        "Pages with a satisfied click",
        "page",
        "satisfied_page_{t}",
        "answered",
        "share",
        1,
        f"pages with at least one satisfied click / pages that were not empty; {SATISFIED}",
        _VISIT,
        ONCE,
        FOX,
        f"{_THRESHOLD} {POSITION}",
        parameters={"t": 30.0},
        needs=("clicks", "unclicked", "dwell"),
        biased=True,
    ),
    OnlineMetric(
        "DwellOver",
        "Visits that last longer than a time",
        "click",
        "dwell_ms",
        "ended",
        "share",
        1,
        "Kaplan-Meier estimate of the share of visits that last t seconds or more",
        _VISIT,
        "clicks that name the page",
        "Kaplan and Meier, Nonparametric estimation from incomplete observations (JASA 1958)",
        "It takes visits that nobody saw end to be like those that went on as long. The last visit of a session is "
        "not: users often leave because they found it.",
        parameters={"t": 30.0},
        needs=("clicks", "dwell"),
        kind="survival",
    ),
    OnlineMetric(
        "DwellTime",
        "How long visits last",
        "click",
        "dwell_ms",
        "ended",
        "seconds",
        0,
        "mean of min(dwell, t): the area below the Kaplan-Meier curve of visits up to t seconds; with q: the time by "
        "which a share q of them has ended by that curve, whatever t is",
        _VISIT,
        "clicks that name the page",
        "Liu, White and Dumais, Understanding web browsing behaviors through Weibull analysis of dwell time (SIGIR "
        "2010); Irwin, The standard error of an estimate of expectation of life (J. Hygiene 1949): restricted mean",
        "Visits that nobody saw end are taken to be like those that went on as long, and those beyond t count as t, so "
        "that means of different t are different numbers. Long is good for an article and bad for a form.",
        parameters={"t": 300.0, "q": None},
        needs=("clicks", "dwell"),
        kind="survival mean",
    ),
    OnlineMetric(
        "ObservedVisits",
        "Visits that were seen to end",
        "click",
        "observed",
        "click_events",
        "share",
        0,
        "clicks whose visit was seen to end / clicks",
        PAGE,
        "clicks that name the page",
        "the complement of the share of censored visits",
        "It says how much of every other dwell metric was seen, and nothing of quality.",
        needs=("clicks", "dwell"),
    ),
)
"""The metrics of this file."""
