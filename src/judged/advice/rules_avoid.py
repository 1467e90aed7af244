"""Rules that speak against measures."""

from __future__ import annotations

from judged.advice import conditions as are
from judged.advice.rule import Rule

_NOT_ONE = (
    "many-relevant", "graded", "coverage", "first-stage", "diversity", "assessors", "preferences", "recommendation",
    "rag",
)  # fmt: skip

AVOID = (
    Rule(
        id="rr-hides-coverage",
        kind="avoid",
        tasks=_NOT_ONE,
        measures=("RR", "RR@10"),
        when=(are.TWO_OR_MORE,),
        here="Relevant documents a topic: {p.relevant}.",
        why="RR sees the first of them and nothing behind it: two systems with the same RR may find one or all. From"
        " rank 1 to 2 it loses as much as from 2 to never.",
        sources=("Fuhr 2017", "Ferrante, Ferro and Fuhr 2021"),
        disputed="Fuhr and others hold that RR must not be averaged at all; Sakai (2020) and Moffat (2022) that it may"
        " where users stop at the first relevant document.",
    ),
    Rule(
        id="precision-held-down",
        kind="avoid",
        tasks=("single-answer", "many-relevant", "graded", "coverage", "rag"),
        measures=("P@10",),
        when=(are.FEW_FOR_10,),
        here="{p.under_10} of {p.topics:topic} have fewer than 10 relevant documents: a perfect ranking has a mean P@10"
        " of {p.best_p10:.3f}.",
        why="The mean says more about the topics than about the system. RelP@10 divides by what there is, Rprec cuts"
        " where it ends.",
        sources=("Buckley and Voorhees 2005", "Manning, Raghavan and Schütze 2008"),
    ),
    Rule(
        id="recall-held-down-10",
        kind="avoid",
        measures=("R@10",),
        when=(are.MANY_FOR_10,),
        here="{p.over_10} of {p.topics:topic} have more than 10 relevant documents: a perfect ranking has a mean R@10"
        " of {p.best_r10:.3f}.",
        why="A page of 10 cannot hold them. RelP@10 (capped recall) can reach 1.",
        sources=("Thakur et al. 2021",),
    ),
    Rule(
        id="recall-held-down-100",
        kind="avoid",
        measures=("R@100",),
        when=(are.MANY_FOR_100,),
        here="{p.over_100} of {p.topics:topic} have more than 100 relevant documents: a perfect ranking has a mean"
        " R@100 of {p.best_r100:.3f}.",
        why="100 places cannot hold them. RelP@100 (capped recall) can reach 1; R@1000 has more room.",
        sources=("Thakur et al. 2021",),
    ),
    Rule(
        id="deep-measures-shallow-pool",
        kind="avoid",
        tasks=("many-relevant", "graded", "coverage", "recommendation", "rag", "first-stage"),
        measures=("AP",),
        when=(are.SEVERAL, are.SHALLOW),
        here="Judged documents a topic: {p.judged}.",
        why="AP divides by all relevant documents and looks at the whole list; where few are judged, what it sees far"
        " down is mostly holes, and it falls for systems that find something new.",
        sources=("Buckley and Voorhees 2004", "Lu, Moffat and Culpepper 2016"),
    ),
    Rule(
        id="whole-lists-uneven",
        kind="avoid",
        tasks=("single-answer", *_NOT_ONE),
        measures=("AP", "nDCG", "SetP", "SetR"),
        when=(are.UNEVEN_LISTS, ~are.SETS),
        here="Documents returned: {p.shortest_run.name} {p.shortest_run.returned}; {p.longest_run.name}"
        " {p.longest_run.returned}.",
        why="Without a cutoff the longer list has more chances, and so it has behind the end of the shorter. Compare"
        " at a cutoff that all lists reach, or with --depth.",
        sources=("Lu, Moffat and Culpepper 2016",),
    ),
    Rule(
        id="condensed-without-negatives",
        kind="avoid",
        measures=("Bpref", "nDCG(judged_only=true)@10"),
        when=(are.ONE_SIDED,),
        here="In {p.one_sided} of {p.with_relevant:topic} with relevant documents, nothing is judged not relevant.",
        why="Both leave unjudged documents out, and then only relevant ones are left: whatever is found looks perfect.",
        sources=("Buckley and Voorhees 2004", "Sakai 2007"),
    ),
    Rule(
        id="sets-have-no-ranks",
        kind="avoid",
        measures=("nDCG@10", "AP", "RR", "P@10"),
        when=(are.SETS,),
        here="Without scores: {p.sets}.",
        why="They need an order, and there is none; what order the file has says nothing.",
        sources=("Manning, Raghavan and Schütze 2008",),
    ),
    Rule(
        id="accuracy",
        kind="avoid",
        tasks=("set", "coverage", "rag"),
        measures=("Accuracy(n=1000000)",),
        about=("relevant",),
        here="Relevant documents a topic: {p.relevant}, out of a whole collection.",
        why="Nearly every document is not relevant, so returning nothing is nearly always right. n is the size of the"
        " collection. What BEIR calls accuracy is Success.",
        sources=("Manning, Raghavan and Schütze 2008",),
    ),
    Rule(
        id="err-stops-early",
        kind="avoid",
        tasks=("coverage",),
        measures=("ERR(max=4)@20",),
        when=(are.TWO_OR_MORE,),
        here="Relevant documents a topic: {p.relevant}.",
        why="ERR is for a user who stops at the first good document; one who wants everything does not.",
        sources=("Chapelle et al. 2009",),
    ),
    Rule(
        id="same-number-twice",
        kind="avoid",
        tasks=("single-answer", "first-stage"),
        measures=("Success@100",),
        when=(are.ONLY_ONE,),
        here="No topic has more than one relevant document.",
        why="With one relevant document, recall and Success at a cutoff are the same number: report one of them.",
        sources=("Manning, Raghavan and Schütze 2008",),
    ),
    Rule(
        id="ndcg-is-like-rr",
        kind="avoid",
        tasks=("single-answer",),
        measures=("nDCG@10",),
        when=(are.ONE_ANSWER, ~are.GRADED),
        here="{p.single} of {p.topics:topic} have exactly one relevant document, and all have one grade.",
        why="Found at rank r, it has an nDCG of 1/log2(r+1) and an RR of 1/r: another scale for the same rank. Report"
        " one of them.",
        sources=("Järvelin and Kekäläinen 2002",),
        disputed="BEIR (Thakur et al. 2021) takes nDCG@10 for every task, so that all can be averaged; it also falls"
        " more slowly behind rank 1.",
    ),
)
