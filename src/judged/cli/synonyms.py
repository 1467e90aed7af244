"""What options are called elsewhere: the hint for one that a command does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHER = {
    "digits": "decimals precision round rounding places decimal-places float-format",
    "min-difference": "delta min-delta min-diff mindiff epsilon threshold minimum",
    "margin": "delta tolerance equivalence equivalence-margin threshold noninferiority-margin",
    "level": "confidence confidence-level conf-level conf ci-level",
    "alpha": "level significance significance-level sig confidence confidence-level p-value p-threshold",
    "rel": "level rel-level relevance-level relevance relevance-threshold min-rel min-relevance min-grade grade",
    "measure": "metric metrics measures m eval-metric k cutoff at",
    "cutoff": "k at top top-k topk rank depth",
    "to": "k cutoff top-k max-rank",
    "depth": "k cutoff top-k topk max-rank max-depth",
    "limit": "top worst best show shown max n-topics head",
    "texts": "docs corpus titles documents passages collection doc-texts",
    "documents": "docs corpus texts collection",
    "queries": "query-file queries-file query topics-file topic-file texts-of-topics",
    "where": "topics filter subset select only query-id query-ids qid qids topic topic-ids",
    "topic": "topics query query-id query-ids qid qids id",
    "per-topic": "per-query by-topic by-query per-topics topicwise all-topics q",
    "pairs": "all-pairs pairwise",
    "algorithm": "method fusion how",
    "normalise": "norm normalize normalization normalisation scale",
    "folds": "cv n-splits splits",
    "weight": "weights w alpha",
    "rrf-k": "k rank-constant",
    "test": "method statistical-test stat-test significance-test hypothesis-test stat",
    "correction": "adjust adjustment p-adjust padjust multiple-testing multiple-comparisons corrections method",
    "baseline": "control reference base against baseline-run reference-run baseline-system",
    "format": "json csv latex markdown html table output-format out-format fmt form type as-json",
    "output": "out save outfile output-file save-to to file",
    "seed": "random-state random-seed rng rng-seed",
    "resamples": "n-resamples permutations n-permutations iterations draws samples samples-of-topics",
    "attributes": "attrs metadata features topic-attributes query-attributes categories",
    "by": "slice group-by groupby facet facets slice-by attribute",
    "min-topics": "minimum min-size min-queries least",
    "min-loss": "minimum min-difference delta",
    "ties": "tie tie-breaking tie-break tiebreak ties-policy",
    "fdr": "rate false-discovery-rate q-value",
    "ci": "interval intervals confidence-interval",
    "higher-is-better": "more-is-better maximize maximise",
    "n": "num-topics n-topics topics sample-size",
    "difference": "delta effect effect-size",
    "sd": "std stddev standard-deviation",
    "config": "configuration settings gate-config",
    "weights": "weight traffic",
    "as": "dialect tool tools compare-with",
    "costs": "cost-file latency",
}
"""Of each option of ours, what people write in its place; the command's own options alone are named."""

_RUNS = ("run", "runs", "qrels", "judgments", "candidate")


def fix_of(error: click.NoSuchOption) -> str:
    """Say which option of the command is meant; empty where nobody can tell."""
    written = error.option_name.lstrip("-").replace("_", "-")
    if error.ctx is None:
        return ""
    parameters = error.ctx.command.params
    found = list(_meant(written, parameters))
    if len(found) == 1:
        return f"write {found[0][0]}"
    if found:
        return "write " + ", or ".join(f"{flag} ({about})" for flag, about in found)
    arguments = [param.make_metavar(error.ctx) for param in parameters if isinstance(param, click.Argument)]
    if written in _RUNS and arguments:
        return f"files stand without an option: {error.ctx.command_path} {' '.join(arguments)}"
    return ""


def _meant(written: str, parameters: list[click.Parameter]) -> Iterator[tuple[str, str]]:
    """Give the options that may be meant, each with the beginning of its help."""
    for param in parameters:
        flag = max(param.opts, key=len)
        name = flag.removeprefix("--")
        if isinstance(param, click.Option) and written in OTHER.get(name, "").split():
            takes_it = name == "format" and isinstance(param.type, click.Choice) and written in param.type.choices
            about = re.split(r"[.:;](?:\s|$)", param.help or "")[0]
            yield f"{flag} {written}" if takes_it else flag, about[:1].lower() + about[1:]
