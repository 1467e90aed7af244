"""What clicks tell of documents: models of how users click, and judgments made of them."""

from judged._lazily import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.clicks.comparison": ("ModelComparison", "compare_models"),
        "judged.clicks.fitted": ("ModelFit", "fit_model"),
        "judged.clicks.models": ("MODELS", "ClickModel"),
        "judged.clicks.cells": ("Cells", "Patterns", "cells_of", "patterns_of"),
        "judged.clicks.expected": ("Coec", "coec"),
        "judged.clicks.examination": ("Propensities", "propensities", "read_propensities"),
        "judged.clicks.counterfactual": ("IpsScores", "ips"),
        "judged.clicks.off_policy_estimates": ("OffPolicyEstimates", "off_policy"),
        "judged.clicks.judgments": ("ClickJudgments", "judge_clicks"),
        "judged.clicks.against": ("ClickAgreement", "against_people"),
        "judged.clicks.uncertain": ("UncertainScores", "evaluate_uncertain"),
    },
)
