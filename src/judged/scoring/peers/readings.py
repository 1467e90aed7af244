"""What each tool computes when it is asked for a well-known measure: its own name for it, and ours for its number.

Under one name tools print different numbers. These tables say which number each would print; `judged.compare_tools`
and ``judged explain --as`` show them side by side. What a tool is asked for is the measure of that name with the
tool's own defaults. Sources and numbers: docs/same-name.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.scoring.measures.parameters import format_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.scoring.judging import Precision, TopicPolicy
    from judged.scoring.measures.base import Measure


@dataclass(frozen=True)
class Reading:
    """What one tool makes of a measure's name."""

    called: str  # the tool's own name; `{k}` stands for what follows the `@`
    # the canonical name of its number, with `{k}`; empty where the tool's dialect reads `called` itself
    measure: str = ""
    rule: str = ""  # what is special about it, in a clause

    def at(self, cutoff: float | None) -> Reading:
        """Put what follows the ``@`` in."""
        k = "" if cutoff is None else format_value(cutoff)
        return Reading(self.called.replace("{k}", k), self.measure.replace("{k}", k), self.rule)


@dataclass(frozen=True)
class Tool:
    """One tool's readings."""

    name: str
    about: str  # which versions were compared
    dialect: str  # the dialect whose ranking and topics it has
    # by our name without parameters, with `@k` where there is a cutoff
    readings: Mapping[str, Reading] = field(repr=False)
    returned_only: bool = False  # whether it sees no judgment of a document that was not returned
    # the measures for which a document whose score is 0 or below counts as not found
    positive_only: tuple[str, ...] = ()
    # topics, precision: policies that go before those of the dialect
    topics: TopicPolicy | None = None
    precision: Precision | None = None
    takes_rel: bool = False  # whether it can be given the lowest relevant grade; one that cannot counts from grade 1
    # the measures for which it orders equal scores in a way of its own, which is not followed here; `*` for all
    own_ties: tuple[str, ...] = ()

    def reading(self, measure: Measure) -> Reading | None:
        """Find what the tool computes under this measure's name; None where it has none."""
        cutoff, kind = getattr(measure, measure.entry.cutoff_name, None), self.kind(measure)
        found = self.readings.get(kind)
        return None if found is None else found.at(cutoff if kind.endswith("@k") else None)

    def kind(self, measure: Measure) -> str:
        """Give the name under which a measure stands in the tables."""
        name = measure.entry.name
        cut = getattr(measure, measure.entry.cutoff_name, None) is not None and f"{name}@k" in self.readings
        return f"{name}@k" if cut else name

    def finds_positive_only(self, measure: Measure) -> bool:
        """Whether it finds no document whose score is 0 or below."""
        return self.kind(measure) in self.positive_only

    def orders_ties_otherwise(self, measure: Measure) -> bool:
        """Whether its order of equal scores is not the one that is followed here."""
        return "*" in self.own_ties or self.kind(measure) in self.own_ties


_TREC_EVAL = {
    "nDCG@k": Reading("ndcg_cut.{k}", rule="no gains can be given to a cut nDCG, and -l does not change it"),
    "nDCG": Reading("ndcg", rule="the ideal is the whole list of judged documents"),
    "AP": Reading("map"),
    "AP@k": Reading("map_cut.{k}", rule="divided by all relevant documents, not by k"),
    "GMAP": Reading("gm_map"),
    "P@k": Reading("P.{k}", rule="divided by k, however few documents were returned"),
    "R@k": Reading("recall.{k}"),
    "RelP@k": Reading("relative_P.{k}"),
    "RR": Reading("recip_rank"),
    "RR@k": Reading("recip_rank", rule="it knows no cutoff"),
    "Success@k": Reading("success.{k}"),
    "Rprec": Reading("Rprec"),
    "Bpref": Reading("bpref"),
    "InfAP": Reading("infAP"),
    "AP11": Reading("11pt_avg"),
    "SetP": Reading("set_P"),
    "SetR": Reading("set_recall"),
    "SetF": Reading("set_F", rule="F1; its parameter would be the square of beta"),
    "SetAP": Reading("set_map"),
    "SetRelP": Reading("set_relative_P"),
    "IPrec@k": Reading("iprec_at_recall.{k}"),
    "RprecMult@k": Reading("Rprec_mult.{k}"),
    "GMBpref": Reading("gm_bpref"),
    "Yaap": Reading("yaap"),
    "BinG": Reading("binG"),
    "G": Reading("G"),
    "nDCGrel": Reading("ndcg_rel"),
    "RnDCG": Reading("Rndcg"),
    "Utility": Reading("utility"),
    "NumRet": Reading("num_ret"),
    "NumRel": Reading("num_rel"),
    "NumRelRet": Reading("num_rel_ret"),
}
_TREC_EVAL_10 = {
    "DCG": Reading("dcg"),
    "IdealDCG": Reading("ideal_dcg"),
    "RBP": Reading(
        "rbp",
        "RBP(p=0.9,gain=graded,max=topic)",
        "its own persistence is 0.9, and gains are divided by the topic's highest (as it is meant: its code compares"
        " with memory that was never set)",
    ),
    "Judged@k": Reading("unj.{k}", rule="the share that is not judged, of k places"),
    "Unjudged@k": Reading("unj.{k}"),
}

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("trec_eval-10", "trec_eval 10.0 -c", "trec_eval-10", {**_TREC_EVAL, **_TREC_EVAL_10}, takes_rel=True),
        Tool("trec_eval-9", "trec_eval 9.0.8", "trec_eval-9", _TREC_EVAL, takes_rel=True),
        Tool("pytrec_eval", "pytrec_eval-terrier 0.5.11", "trec_eval-9", _TREC_EVAL, takes_rel=True),
        Tool(
            "gdeval",
            "gdeval.pl of the TREC Web tracks",
            "gdeval",
            {
                "nDCG@k": Reading("ndcg@{k}", rule="exponential gain; topics without a positive grade do not count"),
                "nDCG": Reading("ndcg@20", rule="exponential gain, and always a cutoff: 20"),
                "ERR@k": Reading("err@{k}", rule="the highest grade is 4, whatever the judgments are"),
                "ERR": Reading("err@20", rule="the highest grade is 4, and the cutoff 20"),
            },
        ),
        Tool(
            "ndeval",
            "ndeval of the TREC Web tracks",
            "ndeval",
            {
                f"{ours}{at}": Reading(f"{theirs}{at.replace('@k', '@{k}')}")
                for ours, theirs, at in (
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
                "RR": Reading("MRR @10", rule="it stops at rank 10"),
                "RR@k": Reading("MRR @10", rule="it always stops at rank 10"),
            },
        ),
        Tool(
            "beir",
            "BEIR 2.2.0, which runs pytrec_eval",
            "beir",
            {
                "nDCG@k": Reading("NDCG@{k}"),
                "AP@k": Reading("MAP@{k}"),
                "R@k": Reading("Recall@{k}"),
                "P@k": Reading("P@{k}"),
                "RR@k": Reading("MRR@{k}"),
                "RelP@k": Reading("R_cap@{k}"),
                "Hole@k": Reading("Hole@{k}"),
                "Judged@k": Reading("Hole@{k}", rule="the share of places whose document no topic judges"),
                "Success@k": Reading("Accuracy@{k}"),
                "Accuracy": Reading("Accuracy@10", rule="whether there is a relevant document among the first k"),
            },
            own_ties=("RR@k", "RelP@k", "Hole@k", "Judged@k", "Success@k", "Accuracy"),
        ),
        Tool(
            "ranx",
            "ranx 0.3.21, make_comparable",
            "ranx",
            {
                "nDCG@k": Reading("ndcg@{k}"),
                "nDCG": Reading("ndcg"),
                "DCG@k": Reading("dcg@{k}"),
                "AP": Reading("map"),
                "AP@k": Reading("map@{k}"),
                "P@k": Reading("precision@{k}"),
                "R@k": Reading("recall@{k}"),
                "RR": Reading("mrr"),
                "RR@k": Reading("mrr@{k}"),
                "Rprec": Reading("r-precision"),
                "Bpref": Reading("bpref", rule="0/0 where no judged document is not relevant"),
                "Success@k": Reading("hit_rate@{k}"),
                "SetP": Reading("precision"),
                "SetR": Reading("recall"),
                "SetF": Reading("f1", rule="F1 of all that was returned"),
                "F@k": Reading("f1@{k}"),
                "RBP": Reading(
                    "rbp.80", rule="the persistence must be given (here 0.8), and grades are added up as they are"
                ),
            },
            takes_rel=True,
            own_ties=("*",),
        ),
        Tool(
            "ir_measures",
            "ir_measures 0.4.3",
            "judged",
            {
                **{
                    name: Reading(name.replace("@k", "@{k}"), name.replace("@k", "@{k}"))
                    for name in ("nDCG", "nDCG@k", "AP", "AP@k", "P@k", "R@k", "RR", "RR@k", "Success@k", "Rprec")
                },
                **{name: Reading(name, name) for name in ("Bpref", "SetP", "SetR", "SetAP", "SetRelP")},
                "InfAP": Reading("infAP", "InfAP"),
                "IPrec@k": Reading("IPrec@{k}", "IPrec(rounding=up)@{k}", "recall levels are rounded up"),
                "NumRet": Reading("NumRet", "NumRet"),
                "NumRel": Reading("NumRel", "NumRel"),
                "RBP": Reading("RBP", "RBP(p=0.8)", "its own persistence is 0.8, and a document is relevant or not"),
                "ERR@k": Reading("ERR@{k}", "ERR(max=4,undefined=skip)@{k}", "gdeval's: the highest grade is 4"),
                "SetF": Reading("SetF", "SetF", "F1; its parameter goes into the formula unsquared"),
                "Judged@k": Reading("Judged@{k}", "Judged@{k}", "of min(k, returned) documents"),
                "Accuracy": Reading("Accuracy", "PairAccuracy", "a share of pairs of documents"),
            },
            precision="single",
            takes_rel=True,
            own_ties=("RR@k", "Judged@k", "Accuracy"),
        ),
        Tool(
            "trectools",
            "trectools 0.0.50",
            "judged",
            {
                "nDCG@k": Reading("get_ndcg(depth={k})", "nDCG@{k}"),
                "RBP": Reading(
                    "get_rbp()", "RBP(p=0.8)", "its own persistence is 0.8, and a document is relevant or not"
                ),
                "AP": Reading("get_map()", "AP"),
                "P@k": Reading("get_precision(depth={k})", "P@{k}"),
            },
            topics="both",
            own_ties=("*",),
        ),
        Tool(
            "scikit-learn",
            "scikit-learn 1.9.1, given the returned documents",
            "judged",
            {
                "nDCG@k": Reading("ndcg_score(k={k})", "nDCG@{k}", "the ideal is made of the returned documents only"),
                "nDCG": Reading("ndcg_score", "nDCG", "the ideal is made of the returned documents only"),
            },
            returned_only=True,
            own_ties=("*",),
        ),
        Tool(
            "torchmetrics",
            "torchmetrics 1.9.0, given the returned documents, as 0 or 1 for all but nDCG",
            "judged",
            {
                "nDCG@k": Reading(
                    "retrieval_normalized_dcg(top_k={k})",
                    "nDCG@{k}",
                    "the ideal is made of the returned documents only; it lets negative grades take gain away, which is"
                    " not followed here",
                ),
                "nDCG": Reading(
                    "retrieval_normalized_dcg",
                    "nDCG",
                    "the ideal is made of the returned documents only; it lets negative grades take gain away, which is"
                    " not followed here",
                ),
                "AP": Reading(
                    "retrieval_average_precision", "AP(norm=returned)", "divided by the relevant documents returned"
                ),
                "AP@k": Reading(
                    "retrieval_average_precision(top_k={k})",
                    "AP(norm=returned)@{k}",
                    "divided by the relevant documents among the first k",
                ),
                "P@k": Reading("retrieval_precision(top_k={k})", "P@{k}"),
                "R@k": Reading("retrieval_recall(top_k={k})", "R@{k}", "the share of the relevant documents returned"),
                "Success@k": Reading("retrieval_hit_rate(top_k={k})", "Success@{k}"),
                "RR": Reading("retrieval_reciprocal_rank", "RR"),
                "RR@k": Reading("retrieval_reciprocal_rank(top_k={k})", "RR@{k}"),
                "Rprec": Reading("retrieval_r_precision", "Rprec", "R counts the relevant documents returned"),
            },
            returned_only=True,
            positive_only=("AP", "AP@k", "P@k", "R@k", "RR", "RR@k"),
            precision="single",
            takes_rel=True,
            own_ties=("*",),
        ),
        Tool(
            "cwl_eval",
            "cwl-eval 1.0.12",
            "judged",
            {
                "RBP": Reading("RBP@0.9", "RBP(p=0.9,gain=graded,max={highest})", "its own persistence is 0.9"),
                "nDCG@k": Reading(
                    "NDCG-k@{k}", "SDCG(max={highest})@{k}", "the ideal is k documents of the highest grade"
                ),
                "AP": Reading("AP", "AP(norm=returned)", "divided by the relevant documents returned"),
            },
        ),
        Tool(
            "lenskit",
            "LensKit",
            "judged",
            {"RBP": Reading("RBP", "RBP(p=0.85)", "its own persistence is 0.85, and a document is relevant or not")},
        ),
    )
}
"""Every tool by its name."""


def tool_of(name: str) -> Tool:
    """Find a tool by its name."""
    if (found := TOOLS.get(name)) is None:
        near = [known for known in TOOLS if known.startswith(name)] or list(TOOLS)
        raise InputError(f"no tool {name!r}", fix=f"use one of {', '.join(near)}")
    return found
