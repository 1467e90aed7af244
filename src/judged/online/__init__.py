"""What users did: interaction logs, and metrics of them that can be defended."""

from judged.online.estimating.measuring import online_metrics
from judged.online.estimating.series import over_time
from judged.online.facts.settings import FactSettings
from judged.online.findings import Account, LogFinding
from judged.online.log import InteractionLog
from judged.online.metrics.metric import OnlineMetric
from judged.online.metrics.registry import ONLINE_METRICS, online_metric
from judged.online.opening import read_log
from judged.online.result import OnlineEstimate, OnlineScores

__all__ = [
    "ONLINE_METRICS",
    "Account",
    "FactSettings",
    "InteractionLog",
    "LogFinding",
    "OnlineEstimate",
    "OnlineMetric",
    "OnlineScores",
    "online_metric",
    "online_metrics",
    "over_time",
    "read_log",
]
