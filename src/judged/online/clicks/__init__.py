"""What clicks tell of documents: models of how users click, and judgments made of them."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.online.clicks.comparison": ("ModelComparison", "compare_models"),
        "judged.online.clicks.fitted": ("ModelFit", "fit_model"),
        "judged.online.clicks.looked_at": ("MODELS", "ClickModel"),
        "judged.online.clicks.cells": ("Cells", "Patterns", "cells_of", "patterns_of"),
        "judged.online.clicks.expected": ("Coec", "coec"),
        "judged.online.clicks.examination": ("Propensities", "propensities", "read_propensities"),
        "judged.online.clicks.counterfactual": ("IpsScores", "ips"),
        "judged.online.clicks.off_policy_estimates": ("OffPolicyEstimates", "off_policy"),
        "judged.online.clicks.judgments": ("ClickJudgments", "judge_clicks"),
        "judged.online.clicks.against": ("ClickAgreement", "against_people"),
        "judged.online.clicks.uncertain": ("UncertainScores", "evaluate_uncertain"),
    },
)
