"""Statistics of numbers by topic and system. This layer knows no measure and no file."""

from __future__ import annotations

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.stats.interval": ("IntervalMethod", "mean_intervals"),
        "judged.stats.paired": ("paired_test", "paired_tests"),
        "judged.stats.results": ("Difference",),
        "judged.stats.correction": ("adjust", "Discoveries", "losers"),
        "judged.stats.effect": ("effect_sizes", "standardize", "wins", "equivalence", "non_inferiority"),
        "judged.stats.analysis_of_variance": ("anova", "friedman", "nemenyi"),
        "judged.stats.blocked_results": ("AgainstBaseline", "AllPairs", "Anova", "Friedman"),
        "judged.stats.multiple": ("dunnett", "randomized_dunnett", "randomized_tukey", "tukey_hsd"),
        "judged.stats.slice_differences": ("heterogeneity",),
        "judged.stats.sample_size": ("plan", "minimum_detectable", "power"),
        "judged.stats.rank_stability": ("discriminative_power", "stability"),
        "judged.stats.sufficiency": ("reliability",),
        "judged.stats.sensitivity": ("leave_one_topic_out",),
        "judged.stats.selection": ("select",),
        "judged.stats.agreement": ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha"),
        "judged.stats.rankings": ("kendall_tau", "spearman", "tau_ap"),
        "judged.stats.rank_biased_overlap": ("rbo", "rbo_weight"),
        "judged.stats.weighted": ("weighted_means",),
    },
)
