"""What users did: interaction logs, and metrics of them that can be defended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.online.abtest.abtest import abtest
from judged.online.abtest.planning import plan_abtest
from judged.online.check import check_log
from judged.online.curves.series import over_time
from judged.online.difference import difference
from judged.online.estimation.online_metrics import online_metrics
from judged.online.facts.pages import FactSettings
from judged.online.findings import Account, LogFinding
from judged.online.funnel import funnel
from judged.online.interleaving.analysis import interleaving
from judged.online.interleaving.planning import plan_interleaving
from judged.online.log import InteractionLog
from judged.online.metrics import ONLINE_METRICS, OnlineMetric, online_metric
from judged.online.numbers import OnlineEstimate
from judged.online.overview import overview
from judged.online.query_lists import queries
from judged.online.scores import OnlineScores
from judged.online.storage import read_log

if TYPE_CHECKING:
    from judged.online.offline import against_qrels, click_preferences, preference_agreement
    from judged.online.readers.draft import draft_mapping

__all__ = [
    "ONLINE_METRICS",
    "Account",
    "FactSettings",
    "InteractionLog",
    "LogFinding",
    "OnlineEstimate",
    "OnlineMetric",
    "OnlineScores",
    "abtest",
    "against_qrels",
    "check_log",
    "click_preferences",
    "difference",
    "draft_mapping",
    "funnel",
    "interleaving",
    "online_metric",
    "online_metrics",
    "over_time",
    "overview",
    "plan_abtest",
    "plan_interleaving",
    "preference_agreement",
    "queries",
    "read_log",
]

_OFFLINE = ("against_qrels", "click_preferences", "preference_agreement")  # what scores runs takes a while to import


def __getattr__(name: str) -> Any:
    if name == "draft_mapping":
        from judged.online.readers.draft import draft_mapping

        return draft_mapping
    if name not in _OFFLINE:
        raise AttributeError(f"module 'judged.online' has no attribute {name!r}")
    from judged.online import offline

    return getattr(offline, name)
