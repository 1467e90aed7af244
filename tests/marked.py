"""Which tests are marked `slow`, `browser`, or `oracle`, which `make quick` leaves out, and which are `long`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

# Beginnings of paths, where a test takes more than a twentieth of a second in the mean, or where there are many.
SLOW = (
    "comparison/agreement/test_agree", "words/test_contract", "results/charts/", "cli/test_exits", "cli/test_every",
    "cli/test_github",
    "diagnosis/gates/test_gate", "interface/commands/test_gate", "labels/commands/test_labels",
    "online/commands/test_logs", "interface/commands/test_many_runs", "online/commands/test_online",
    "reports/test_online", "cli/test_progress", "reports/test_report", "studies/test_report", "web/test_commands",
    "interface/commands/test_slices", "interface/pages/test_slices", "diagnosis/test_stages",
    "interface/commands/test_stages", "diagnosis/test_tradeoff", "interface/commands/test_tradeoff",
    "scoring/compat/test_trec_eval_command", "scoring/curves/test_command", "scoring/curves/test_curve_of_scores",
    "scoring/curves/test_saving", "diagnosis/test_matrix", "diagnosis/test_planted_losses", "docs/",
    "pipelines/experiments/test_generation", "pipelines/experiments/test_run", "pipelines/experiments/test_trial",
    "fuzz/", "diagnosis/gates/test_decision", "diagnosis/gates/test_first", "diagnosis/gates/test_forms", "labels/",
    "scoring/judging/test_processes", "scoring/judging/test_relational",
    "scoring/measures/test_properties", "online/", "reports/", "results/", "comparison/slicing/test_compare_slices",
    "stats/test_agreement", "online/statistics/test_always", "stats/test_believed", "stats/test_blocked",
    "online/offline/test_clusters", "online/statistics/test_clusters", "stats/test_detectable", "stats/test_extremes",
    "stats/test_heterogeneity", "stats/test_interval", "stats/test_paired_truth", "stats/test_permutations",
    "stats/test_weighted", "scoring/uncertainty/test_order_flags", "scoring/uncertainty/test_ties",
    "scoring/uncertainty/test_unjudged", "web/test_api_contract", "web/test_request_limits",
    "comparison/slicing/test_compare", "comparison/test_compare", "interface/commands/test_compare",
    "interface/pages/test_compare", "interface/pages/test_evaluator", "pipelines/test_pages",
    "interface/pages/test_leaderboard", "interface/pages/test_learn", "diagnosis/test_matrix",
    "interface/pages/test_matrix", "web/test_uploads", "web/test_paths", "interface/commands/test_slices",
    "interface/pages/test_slices", "data/test_topics", "interface/pages/test_topics", "online/clicks/", "online/watch/",
    "reports/changes/", "studies/test_effects", "studies/test_storage", "studies/test_planning", "studies/test_log",
    "studies/test_report_columns", "studies/test_study", "scoring/arrays/test_arrays", "scoring/arrays/test_types",
    "diagnosis/test_review", "pipelines/experiments/test_engines", "test_few_units",
    "scoring/explanation/test_other_tools", "scoring/explanation/test_working", "scoring/judging/test_judge",
    "pipelines/rag/test_judge_error", "pipelines/rag/test_waterfall", "stats/test_prediction", "stats/test_selection",
    "pipelines/traces/test_damaged", "pipelines/traces/test_funnel", "web/test_downloads", "labels/pages/test_judging",
    "interface/pages/test_search", "words/test_results", "cli/test_cli", "online/commands/test_interleaving",
    "cli/test_names", "comparison/test_claims", "comparison/test_compare", "diagnosis/test_tradeoff",
    "scoring/evaluation/test_repeated", "pipelines/experiments/test_collection", "pipelines/experiments/test_latency",
    "pipelines/experiments/test_named", "diagnosis/gates/test_few", "pipelines/rag/test_filling",
    "pipelines/rag/test_scoring", "stats/test_bounded", "online/statistics/test_changes",
    "stats/test_paired", "stats/test_rare", "stats/test_ratio", "studies/test_pilot",
    "studies/test_learning_simulated",
    "studies/test_records", "studies/test_report_tables", "studies/test_study_report", "pipelines/traces/test_gaps",
    "pipelines/traces/test_reading", "pipelines/traces/test_writing", "online/pages/test_clicks_in",
    "interface/pages/test_guard", "interface/pages/test_home", "web/test_links", "pipelines/pages/test_traces_in",
    "online/pages/test_users_in", "history/",
)  # fmt: skip
# Files that take a minute or more on a busy machine: `make test` leaves them out, and `make full` runs them.
LONG = (
    "online/test_spark", "docs/test_site", "docs/test_fresh", "studies/test_study_in_browser", "fuzz/test_fuzz",
    "isolation/test_components", "diagnosis/test_planted_losses", "online/interleaving_analysis/test_credit",
    "online/clicks/test_comparison", "online/clicks/test_off_policy", "online/clicks/test_uncertain",
    "online/slicing/test_condition", "online/readers/test_hostile", "online/preparation/test_what_can",
    "online/statistics/test_changes", "online/pages/test_users_in", "online/pages/test_clicks_in",
    "scoring/explanation/test_other_tools", "scoring/measures/test_graded_averages", "oracle/", "stats/test_agreement",
    "pipelines/traces/test_damaged", "pipelines/traces/test_funnel", "pipelines/rag/test_waterfall",
    "web/test_page_work_in", "labels/pages/test_judging_in", "interface/pages/test_learn_in",
    "interface/pages/test_home_in", "interface/pages/test_topic_in", "interface/pages/test_matrix_in",
    "reports/changes/test_review", "layouts/test_convert", "faults/", "history/test_judgment_changes",
    "interface/pages/test_evaluator_in", "studies/test_learning_simulated", "studies/test_term_weights_in",
    "online/test_another_database", "pipelines/pages/test_rag_in", "pipelines/pages/test_traces_in",
    "reports/test_in_browser",
)  # fmt: skip
ORACLE = (
    "oracle/", "scoring/compat/test_ir_measures", "scoring/compat/test_pytrec_eval", "scoring/measures/test_assessors",
    "scoring/measures/test_preferences", "scoring/measures/test_pytrec_eval",
)  # fmt: skip


def is_page(path: str) -> bool:
    """Return whether a file recomputes the numbers of a page of the documentation; `make check` runs these tests."""
    return path.startswith("docs/") and path.partition("::")[0].endswith("_page.py")


def is_left_out(path: str, expression: str) -> bool:
    """Return whether an expression of marks excludes all tests of a file or folder, which then need no import."""
    parts = [part.strip() for part in expression.split(" and ")]
    left_out = (
        ("not slow", path.startswith(SLOW)),
        ("not long", path.startswith(LONG)),
        ("not oracle", path.startswith(ORACLE)),
        ("not page", is_page(path)),
    )
    return any(mark in parts and applies for mark, applies in left_out)


def marks_of(item: pytest.Item) -> Iterator[str]:
    """Return the marks of a test by its file. Single tests in quick files have their own marks."""
    path = item.nodeid.removeprefix("tests/")
    if path.startswith(SLOW) or getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        yield "slow"
    if path.startswith(LONG):
        yield "long"
    if path.startswith(ORACLE):
        yield "oracle"
    if is_page(path):
        yield "page"
    if "browser" in getattr(item, "fixturenames", ()):
        yield "browser"
