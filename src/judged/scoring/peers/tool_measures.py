"""Tables of other tools' measures: the name of the measure in the tool, and the `judged` measure with the same value.

Tools compute different values under the same name. `judged.compare_tools` and ``judged explain --as`` show the value
of each tool, with the tool's own defaults. Sources and numbers: docs/same-name.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.results.spelling import use_one_of
from judged.scoring.measures.parameters import format_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.scoring.judging import Precision, TopicPolicy
    from judged.scoring.measures.base import Measure


@dataclass(frozen=True)
class Alias:
    """Name of a measure in a tool, with the equivalent measure of `judged`."""

    name: str  # name in the tool, with `{k}` for the cutoff or parameter after the `@`
    # the equivalent `judged` measure, with `{k}`; if empty, the dialect of the tool parses `name`
    measure: str = ""
    note: str = ""  # how the tool's definition differs

    def with_cutoff(self, cutoff: float | None) -> Alias:
        """Return a copy with `{k}` replaced in both names."""
        k = "" if cutoff is None else format_value(cutoff)
        return Alias(self.name.replace("{k}", k), self.measure.replace("{k}", k), self.note)


@dataclass(frozen=True)
class Tool:
    """Tool with its measures, and its rules for judgments, runs, and ties."""

    name: str
    about: str  # the version that the values were compared with
    dialect: str  # the dialect with the tool's rules for ranking and topics
    # by the `judged` name without parameters, with `@k` for a measure with a cutoff
    aliases: Mapping[str, Alias] = field(repr=False)
    returned_only: bool = False  # whether it ignores judgments of documents that the run did not return
    # measures that ignore documents with a score of 0 or less
    positive_only: tuple[str, ...] = ()
    # topics, precision: policies that override those of the dialect
    topics: TopicPolicy | None = None
    precision: Precision | None = None
    has_rel_option: bool = False  # whether the lowest relevant grade is an option; otherwise it is 1
    # measures for which the tool's order of equal scores is not reproduced here; `*` for all measures
    unmodeled_ties: tuple[str, ...] = ()

    def find_alias(self, measure: Measure) -> Alias | None:
        """Return the name of the measure in the tool with its equivalent, or None."""
        cutoff, kind = getattr(measure, measure.entry.cutoff_name, None), self._key(measure)
        template = self.aliases.get(kind)
        return None if template is None else template.with_cutoff(cutoff if kind.endswith("@k") else None)

    def _key(self, measure: Measure) -> str:
        name = measure.entry.name
        has_cutoff = getattr(measure, measure.entry.cutoff_name, None) is not None and f"{name}@k" in self.aliases
        return f"{name}@k" if has_cutoff else name

    def ignores_nonpositive(self, measure: Measure) -> bool:
        """Whether the tool ignores documents with a score of 0 or less."""
        return self._key(measure) in self.positive_only

    def has_unmodeled_ties(self, measure: Measure) -> bool:
        """Whether the tool's order of equal scores is not reproduced here."""
        return "*" in self.unmodeled_ties or self._key(measure) in self.unmodeled_ties


_TREC_EVAL = {
    "nDCG@k": Alias("ndcg_cut.{k}", note="ndcg_cut does not accept a table of gains, and ignores the option -l"),
    "nDCG": Alias("ndcg", note="the ideal contains all judged documents, without a cutoff"),
    "AP": Alias("map"),
    "AP@k": Alias("map_cut.{k}", note="divided by the number of all relevant documents, not by k"),
    "GMAP": Alias("gm_map"),
    "P@k": Alias("P.{k}", note="divided by k, even if fewer documents were returned"),
    "R@k": Alias("recall.{k}"),
    "RelP@k": Alias("relative_P.{k}"),
    "RR": Alias("recip_rank"),
    "RR@k": Alias("recip_rank", note="the score of the tool has no cutoff"),
    "Success@k": Alias("success.{k}"),
    "Rprec": Alias("Rprec"),
    "Bpref": Alias("bpref"),
    "InfAP": Alias("infAP"),
    "AP11": Alias("11pt_avg"),
    "SetP": Alias("set_P"),
    "SetR": Alias("set_recall"),
    "SetF": Alias("set_F", note="F1; the parameter of set_F is the square of beta"),
    "SetAP": Alias("set_map"),
    "SetRelP": Alias("set_relative_P"),
    "IPrec@k": Alias("iprec_at_recall.{k}"),
    "RprecMult@k": Alias("Rprec_mult.{k}"),
    "GMBpref": Alias("gm_bpref"),
    "Yaap": Alias("yaap"),
    "BinG": Alias("binG"),
    "G": Alias("G"),
    "nDCGrel": Alias("ndcg_rel"),
    "RnDCG": Alias("Rndcg"),
    "Utility": Alias("utility"),
    "NumRet": Alias("num_ret"),
    "NumRel": Alias("num_rel"),
    "NumRelRet": Alias("num_rel_ret"),
}
_TREC_EVAL_10 = {
    "DCG": Alias("dcg"),
    "IdealDCG": Alias("ideal_dcg"),
    "RBP": Alias(
        "rbp",
        "RBP(p=0.9,gain=graded,max=topic)",
        "the default persistence is 0.9. trec_eval 10 should divide gains by the highest gain of the topic, but uses"
        " an uninitialized variable, so the scores of trec_eval 10 can differ",
    ),
    "Judged@k": Alias("unj.{k}", note="the share of the first k ranks without a judged document"),
    "Unjudged@k": Alias("unj.{k}"),
}

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("trec_eval-10", "trec_eval 10.0 -c", "trec_eval-10", {**_TREC_EVAL, **_TREC_EVAL_10}, has_rel_option=True),
        Tool("trec_eval-9", "trec_eval 9.0.8", "trec_eval-9", _TREC_EVAL, has_rel_option=True),
        Tool("pytrec_eval", "pytrec_eval-terrier 0.5.11", "trec_eval-9", _TREC_EVAL, has_rel_option=True),
        Tool(
            "gdeval",
            "gdeval.pl of the TREC Web tracks",
            "gdeval",
            {
                "nDCG@k": Alias("ndcg@{k}", note="exponential gain; topics without a positive grade do not count"),
                "nDCG": Alias("ndcg@20", note="exponential gain, always with cutoff 20"),
                "ERR@k": Alias("err@{k}", note="the highest grade of the scale is always 4"),
                "ERR": Alias("err@20", note="the highest grade of the scale is always 4, and the cutoff is 20"),
            },
        ),
        Tool(
            "ndeval",
            "ndeval of the TREC Web tracks",
            "ndeval",
            {
                f"{ours}{suffix}": Alias(f"{theirs}{suffix.replace('@k', '@{k}')}")
                for ours, theirs, suffix in (
                    ("AlphaDCG", "alpha-DCG", "@k"),
                    ("AlphanDCG", "alpha-nDCG", "@k"),
                    ("ERRIA", "ERR-IA", "@k"),
                    ("nERRIA", "nERR-IA", "@k"),
                    ("NRBP", "NRBP", ""),
                    ("nNRBP", "nNRBP", ""),
                    ("APIA", "MAP-IA", ""),
                    ("PIA", "P-IA", "@k"),
                    ("StRecall", "strec", "@k"),
                )
            },
        ),
        Tool(
            "msmarco",
            "msmarco_passage_eval.py",
            "msmarco",
            {
                "RR": Alias("MRR @10", note="the tool uses only the first 10 ranks"),
                "RR@k": Alias("MRR @10", note="the tool always uses the first 10 ranks"),
            },
        ),
        Tool(
            "beir",
            "BEIR 2.2.0, which runs pytrec_eval",
            "beir",
            {
                "nDCG@k": Alias("NDCG@{k}"),
                "AP@k": Alias("MAP@{k}"),
                "R@k": Alias("Recall@{k}"),
                "P@k": Alias("P@{k}"),
                "RR@k": Alias("MRR@{k}"),
                "RelP@k": Alias("R_cap@{k}"),
                "Hole@k": Alias("Hole@{k}"),
                "Judged@k": Alias("Hole@{k}", note="the share of ranks whose document is not judged for any topic"),
                "Success@k": Alias("Accuracy@{k}"),
                "Accuracy": Alias("Accuracy@10", note="whether there is a relevant document among the first k"),
            },
            unmodeled_ties=("RR@k", "RelP@k", "Hole@k", "Judged@k", "Success@k", "Accuracy"),
        ),
        Tool(
            "ranx",
            "ranx 0.3.21, make_comparable",
            "ranx",
            {
                "nDCG@k": Alias("ndcg@{k}"),
                "nDCG": Alias("ndcg"),
                "DCG@k": Alias("dcg@{k}"),
                "AP": Alias("map"),
                "AP@k": Alias("map@{k}"),
                "P@k": Alias("precision@{k}"),
                "R@k": Alias("recall@{k}"),
                "RR": Alias("mrr"),
                "RR@k": Alias("mrr@{k}"),
                "Rprec": Alias("r-precision"),
                "Bpref": Alias("bpref", note="the score is undefined (0/0) if no document is judged not relevant"),
                "Success@k": Alias("hit_rate@{k}"),
                "SetP": Alias("precision"),
                "SetR": Alias("recall"),
                "SetF": Alias("f1", note="the measure is F1 of all returned documents"),
                "F@k": Alias("f1@{k}"),
                "RBP": Alias("rbp.80", note="the persistence is required (here: 0.8), and grades are not scaled"),
            },
            has_rel_option=True,
            unmodeled_ties=("*",),
        ),
        Tool(
            "ir_measures",
            "ir_measures 0.4.3",
            "judged",
            {
                **{
                    name: Alias(name.replace("@k", "@{k}"), name.replace("@k", "@{k}"))
                    for name in ("nDCG", "nDCG@k", "AP", "AP@k", "P@k", "R@k", "RR", "RR@k", "Success@k", "Rprec")
                },
                **{name: Alias(name, name) for name in ("Bpref", "SetP", "SetR", "SetAP", "SetRelP")},
                "InfAP": Alias("infAP", "InfAP"),
                "IPrec@k": Alias("IPrec@{k}", "IPrec(rounding=up)@{k}", "recall levels are rounded up"),
                "NumRet": Alias("NumRet", "NumRet"),
                "NumRel": Alias("NumRel", "NumRel"),
                "RBP": Alias("RBP", "RBP(p=0.8)", "the default persistence is 0.8, and relevance is binary"),
                "ERR@k": Alias(
                    "ERR@{k}", "ERR(max=4,undefined=skip)@{k}", "as in gdeval: the highest grade of the scale is 4"
                ),
                "SetF": Alias(
                    "SetF",
                    "SetF",
                    "F1; for other values of beta, the formula of ir_measures uses beta instead of beta^2",
                ),
                "Judged@k": Alias("Judged@{k}", "Judged@{k}", "divided by min(k, number of returned documents)"),
                "Accuracy": Alias("Accuracy", "PairAccuracy", "the share of document pairs in the right order"),
            },
            precision="single",
            has_rel_option=True,
            unmodeled_ties=("RR@k", "Judged@k", "Accuracy"),
        ),
        Tool(
            "trectools",
            "trectools 0.0.50",
            "judged",
            {
                "nDCG@k": Alias("get_ndcg(depth={k})", "nDCG@{k}"),
                "RBP": Alias("get_rbp()", "RBP(p=0.8)", "the default persistence is 0.8, and relevance is binary"),
                "AP": Alias("get_map()", "AP"),
                "P@k": Alias("get_precision(depth={k})", "P@{k}"),
            },
            topics="both",
            unmodeled_ties=("*",),
        ),
        Tool(
            "scikit-learn",
            "scikit-learn 1.9.1, on the returned documents",
            "judged",
            {
                "nDCG@k": Alias("ndcg_score(k={k})", "nDCG@{k}", "the ideal contains only the returned documents"),
                "nDCG": Alias("ndcg_score", "nDCG", "the ideal contains only the returned documents"),
            },
            returned_only=True,
            unmodeled_ties=("*",),
        ),
        Tool(
            "torchmetrics",
            "torchmetrics 1.9.0, on the returned documents, with grades 0 or 1 except for nDCG",
            "judged",
            {
                "nDCG@k": Alias(
                    "retrieval_normalized_dcg(top_k={k})",
                    "nDCG@{k}",
                    "the ideal contains only the returned documents. In torchmetrics, negative grades reduce the gain;"
                    " the formula of judged does not reproduce this reduction",
                ),
                "nDCG": Alias(
                    "retrieval_normalized_dcg",
                    "nDCG",
                    "the ideal contains only the returned documents. In torchmetrics, negative grades reduce the gain;"
                    " the formula of judged does not reproduce this reduction",
                ),
                "AP": Alias(
                    "retrieval_average_precision",
                    "AP(norm=returned)",
                    "divided by the number of relevant documents returned",
                ),
                "AP@k": Alias(
                    "retrieval_average_precision(top_k={k})",
                    "AP(norm=returned)@{k}",
                    "divided by the number of relevant documents among the first k",
                ),
                "P@k": Alias("retrieval_precision(top_k={k})", "P@{k}"),
                "R@k": Alias(
                    "retrieval_recall(top_k={k})", "R@{k}", "divided by the number of relevant documents returned"
                ),
                "Success@k": Alias("retrieval_hit_rate(top_k={k})", "Success@{k}"),
                "RR": Alias("retrieval_reciprocal_rank", "RR"),
                "RR@k": Alias("retrieval_reciprocal_rank(top_k={k})", "RR@{k}"),
                "Rprec": Alias("retrieval_r_precision", "Rprec", "R is the number of relevant documents returned"),
            },
            returned_only=True,
            positive_only=("AP", "AP@k", "P@k", "R@k", "RR", "RR@k"),
            precision="single",
            has_rel_option=True,
            unmodeled_ties=("*",),
        ),
        Tool(
            "cwl_eval",
            "cwl-eval 1.0.12",
            "judged",
            {
                "RBP": Alias("RBP@0.9", "RBP(p=0.9,gain=graded,max={highest})", "the default persistence is 0.9"),
                "nDCG@k": Alias(
                    "NDCG-k@{k}", "SDCG(max={highest})@{k}", "the ideal is k documents of the highest grade"
                ),
                "AP": Alias("AP", "AP(norm=returned)", "divided by the number of relevant documents returned"),
            },
        ),
        Tool(
            "lenskit",
            "LensKit",
            "judged",
            {"RBP": Alias("RBP", "RBP(p=0.85)", "the default persistence is 0.85, and relevance is binary")},
        ),
    )
}
"""Tools by name."""


def find_tool(name: str) -> Tool:
    """Return the tool with this name."""
    if (tool := TOOLS.get(name)) is None:
        candidates = [tool_name for tool_name in TOOLS if tool_name.startswith(name)] or list(TOOLS)
        raise InputError(f"no tool {name!r}", fix=use_one_of(candidates))
    return tool
