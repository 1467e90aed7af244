"""Statistics of numbers by topic and system. This layer knows no measure and no file."""

from __future__ import annotations

from judged._lazily import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.stats.interval": (
            "IntervalMethod",
            "mean_intervals",
        ),
        "judged.stats.paired": (
            "paired_test",
            "paired_tests",
        ),
        "judged.stats.results": ("Difference",),
        "judged.stats.correction": ("adjust",),
        "judged.stats.effect": (
            "effect_sizes",
            "standardise",
            "wins",
        ),
        "judged.stats.equivalence_test": (
            "equivalence",
            "non_inferiority",
        ),
        "judged.stats.variance": ("anova",),
        "judged.stats.blocked_results": (
            "AgainstBaseline",
            "AllPairs",
            "Anova",
            "Friedman",
        ),
        "judged.stats.dunnett_test": (
            "dunnett",
            "randomised_dunnett",
        ),
        "judged.stats.friedman_test": (
            "friedman",
            "nemenyi",
        ),
        "judged.stats.tukey": (
            "randomised_tukey",
            "tukey_hsd",
        ),
        "judged.stats.discoveries": (
            "Discoveries",
            "losers",
        ),
        "judged.stats.slice_differences": ("heterogeneity",),
        "judged.stats.plans": ("plan",),
        "judged.stats.sample_size": (
            "minimum_detectable",
            "power",
        ),
        "judged.stats.discrimination": ("discriminative_power",),
        "judged.stats.topic_reliability": ("reliability",),
        "judged.stats.robustness": ("leave_one_topic_out",),
        "judged.stats.rank_stability": ("stability",),
        "judged.stats.selection": ("select",),
        "judged.stats.agreement": (
            "cohen_kappa",
            "fleiss_kappa",
            "krippendorff_alpha",
        ),
        "judged.stats.rankings": (
            "kendall_tau",
            "spearman",
            "tau_ap",
        ),
        "judged.stats.rank_biased_overlap": (
            "rbo",
            "rbo_weight",
        ),
        "judged.stats.weighted": ("weighted_means",),
    },
)
