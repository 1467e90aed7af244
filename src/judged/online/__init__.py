"""Analysis of user behavior: interaction logs and their metrics."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.online.ab_tests.abtest": ("abtest",),
        "judged.online.ab_tests.planning": ("plan_abtest",),
        "judged.online.check": ("check_log",),
        "judged.online.series": ("over_time",),
        "judged.online.differences": ("difference",),
        "judged.online.estimation.online_metrics": ("online_metrics",),
        "judged.online.facts.pages": ("FactSettings",),
        "judged.online.findings": ("Account", "LogFinding"),
        "judged.online.search_funnel": ("funnel",),
        "judged.online.interleaving_analysis.analysis": ("interleaving",),
        "judged.online.interleaving_analysis.planning": ("plan_interleaving",),
        "judged.online.log": ("InteractionLog",),
        "judged.online.metrics": ("ONLINE_METRICS", "OnlineMetric", "online_metric"),
        "judged.online.layout": ("OnlineEstimate",),
        "judged.online.log_overview": ("overview",),
        "judged.online.query_lists": ("queries",),
        "judged.online.scores": ("OnlineScores",),
        "judged.online.storage": ("read_log",),
        "judged.online.offline": ("against_qrels", "click_preferences", "preference_agreement"),
        "judged.online.readers.draft": ("draft_mapping",),
    },
)
