"""Click models, position bias, off-policy evaluation, and judgments from clicks."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.online.clicks.comparison": ("ModelComparison", "compare_models"),
        "judged.online.clicks.model_fit": ("ModelFit", "fit_model"),
        "judged.online.clicks.rank_models": ("MODELS", "ClickModel"),
        "judged.online.clicks.impression_counts": (
            "ImpressionCounts", "PagePatterns", "count_impressions", "count_page_patterns",
        ),
        "judged.online.clicks.clicks_over_expected": ("Coec", "coec"),
        "judged.online.clicks.examination": ("Propensities", "propensities", "read_propensities"),
        "judged.online.clicks.counterfactual": ("IpsScores", "ips"),
        "judged.online.clicks.off_policy_estimates": ("OffPolicyEstimates", "off_policy"),
        "judged.online.clicks.judgments": ("ClickJudgments", "judge_clicks"),
        "judged.online.clicks.human_agreement": ("ClickAgreement", "against_people"),
        "judged.online.clicks.uncertain_scores": ("UncertainScores", "evaluate_uncertain"),
    },
)  # fmt: skip
