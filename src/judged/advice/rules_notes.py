"""Rules that say what to know when reading the numbers."""

from __future__ import annotations

from judged.advice import conditions as are
from judged.advice.rule import Rule

NOTES = (
    Rule(
        id="level-four-grades",
        kind="note",
        when=(are.FOUR_LEVELS,),
        here="Measures of relevant or not take grade {p.level:g} and above here.",
        why="What a grade means stands in the guidelines for assessors, not in the file. On this scale the passages of"
        " TREC Deep Learning (MS MARCO) count from 2, as grade 1 means related without answering; its documents count"
        " from 1. Choose with --rel.",
        sources=("Craswell et al. 2020",),
        disputed="The same scale is used in both ways; report the level with the number.",
    ),
    Rule(
        id="level-other-scale",
        kind="note",
        when=(are.GRADED, ~are.FOUR_LEVELS),
        here="Measures of relevant or not take grade {p.level:g} and above here.",
        why="What a grade means stands in the guidelines for assessors, not in the file. Choose another level with"
        " --rel, and report it with the number.",
        sources=("Sormunen 2002",),
    ),
    Rule(
        id="level-loses-topics",
        kind="note",
        when=(are.LEVEL_LOSES,),
        here="{p.lost} of {p.topics:topic} have something above grade 0, and nothing of grade {p.level:g} or more.",
        why="There, measures of relevant or not give 0 whatever is returned. nDCG uses all grades.",
        sources=("Sormunen 2002",),
    ),
    Rule(
        id="weak-grades",
        kind="note",
        when=(are.WEAK,),
        here="{p.weakest:.0%} of the documents above grade 0 have the lowest such grade.",
        why="Counted from there, measures of relevant or not mostly count marginal documents. In TREC's older"
        " collections about half of what counts as relevant was found to be marginal.",
        sources=("Sormunen 2002",),
    ),
    Rule(
        id="gain",
        kind="note",
        tasks=("graded", "first-stage", "rag"),
        measures=("nDCG@10", "nDCG(gain=exp2)@10"),
        when=(are.STEEP,),
        here="Of grades {p.positive}, the highest is worth {p.worth_linear:g} of the lowest with linear gain,"
        " {p.worth_exp2:g} with exp2.",
        why="With exp2 the highest grades rule. trec_eval, BEIR and most libraries take linear gain, web search and the"
        " TREC Web track exp2: the two numbers cannot be compared.",
        sources=("Järvelin and Kekäläinen 2002", "Burges et al. 2005"),
    ),
    Rule(
        id="best-grade-missing",
        kind="note",
        tasks=("graded",),
        measures=("nDCG@10",),
        when=(are.GRADED, are.BELOW_BEST),
        here="{p.below_best} of {p.topics:topic} have something above grade 0, but nothing of the highest grade.",
        why="nDCG is 1 for the best that a topic has, be it weak. A mean of nDCG is no share of satisfied users.",
        sources=("Moffat and Zobel 2008",),
        disputed="Dividing by the ideal makes topics count alike (Järvelin and Kekäläinen 2002); Moffat and Zobel"
        " object that it rests on what the judgments happen to know.",
    ),
    Rule(
        id="rr-scale",
        kind="note",
        tasks=("single-answer",),
        measures=("RR@10",),
        why="RR loses as much from rank 1 to 2 as from 2 to never, so rank 1 rules its mean.",
        sources=("Fuhr 2017", "Sakai 2020"),
        disputed="Fuhr (2017) and Ferrante, Ferro and Fuhr (2021): it is no interval scale and must not be averaged;"
        " Sakai (2020) and Moffat (2022): its values mean something to a user, and so does their mean.",
    ),
    Rule(
        id="single-label",
        kind="note",
        when=(are.ONE_ANSWER, are.ONE_SIDED),
        here="{p.single} of {p.topics:topic} have exactly one relevant document, and nothing is judged not relevant.",
        why="A good document that nobody labelled counts as wrong. On MS MARCO people often preferred the first result"
        " of a good ranker to the labelled one: small differences near the top say little.",
        sources=("Arabzadeh et al. 2022",),
        disputed="Craswell et al. (2021) weigh this against what such labels give: thousands of topics, with which"
        " systems can still be told apart.",
    ),
    Rule(
        id="task-one-data-many",
        kind="note",
        tasks=("single-answer",),
        measures=("RR@10", "Success@10"),
        when=(are.SEVERAL,),
        about=("relevant",),
        here="The task is one answer, but the data have more: {p.relevant}.",
        why="RR and Success take any of them for the answer, and look at no second one.",
        sources=("Voorhees 1999",),
    ),
    Rule(
        id="unlabelled-is-unknown",
        kind="note",
        tasks=("recommendation",),
        when=(are.ONE_SIDED,),
        here="In {p.one_sided} of {p.with_relevant:user} with relevant items, nothing is judged not relevant.",
        why="What a user has not touched is not known to be bad, and popular items are touched more: a recommender of"
        " popular items looks better than it is.",
        sources=("Cremonesi, Koren and Turrin 2010", "Valcarce et al. 2018"),
    ),
    Rule(
        id="sampled-candidates",
        kind="note",
        tasks=("recommendation",),
        when=(are.RUNS,),
        about=("lengths",),
        here="The longest list holds {p.longest:item}.",
        why="Rank the whole catalogue. Among a sample of items, most measures may put the recommenders in another"
        " order.",
        sources=("Krichene and Rendle 2020",),
    ),
    Rule(
        id="rag-order",
        kind="note",
        tasks=("rag",),
        measures=("nDCG@10",),
        why="A language model does not read like a person: where evidence stands matters, but not as nDCG's discount"
        " has it, and relevance to a person predicts the quality of answers only in part. Measure the answers too.",
        sources=("Liu et al. 2024", "Salemi and Zamani 2024"),
    ),
    Rule(
        id="recall-of-the-known",
        kind="note",
        tasks=("coverage", "first-stage"),
        measures=("R@1000",),
        when=(are.SHALLOW,),
        here="Judged documents a topic: {p.judged}.",
        why="Recall is of the relevant documents that are known; pools miss many, so true recall is lower.",
        sources=("Zobel 1998",),
    ),
    Rule(
        id="holes",
        kind="note",
        measures=("Judged@10",),
        when=(are.HOLES, ~are.ONE_SIDED),
        here="{p.least_judged.judged_10:.0%} of the first 10 of {p.least_judged.name} are judged; the lists are judged"
        " to 80% down to rank {p.judged_depth}.",
        why="Unjudged documents count as not relevant, which underrates systems unlike those that fed the pool."
        " --unjudged shows how far they could move each number.",
        sources=("Zobel 1998", "Büttcher et al. 2007"),
        disputed="Where pools were deep and came from many systems it hardly matters: Voorhees, Soboroff and Lin (2022)"
        " judged the new finds of neural rankers on TREC-8, and the order of systems stayed.",
    ),
    Rule(
        id="judged-means-found",
        kind="note",
        measures=("Judged@10",),
        when=(are.RUNS, are.ONE_SIDED, ~are.SETS),
        here="In {p.one_sided} of {p.with_relevant:topic} with relevant documents, nothing is judged not relevant.",
        why="Judged@k is then another precision, and not a share of what assessors looked at: it cannot show holes.",
        sources=("Arabzadeh et al. 2022",),
    ),
    Rule(
        id="uneven-holes",
        kind="note",
        measures=("Judged@10",),
        when=(are.UNEVEN_HOLES, ~are.ONE_SIDED),
        here="Judged among the first 10: {p.most_judged.judged_10:.0%} of {p.most_judged.name},"
        " {p.least_judged.judged_10:.0%} of {p.least_judged.name}.",
        why="A difference between such runs may be one of judging. Judge more of the first 10, or compare what both"
        " readings of the holes give.",
        sources=("Büttcher et al. 2007", "Sakai 2008"),
    ),
    Rule(
        id="ties",
        kind="note",
        when=(are.TIES,),
        here="{p.most_tied.tied_10:.0%} of the judged documents in the first 10 of {p.most_tied.name} are tied with"
        " another.",
        why="Their order is that of the document ids, so part of the score is chance. Write scores with all"
        " their digits; --ties expected takes the mean over all orders, --ties bounds shows how far they move it.",
        sources=("McSherry and Najork 2008", "Cabanac et al. 2010"),
    ),
    Rule(
        id="lists-end",
        kind="note",
        when=(are.SHORT_LISTS, ~are.SETS),
        here="The longest list holds {p.longest:document}.",
        why="Cutoffs behind the end of the lists say nothing more: they are left out, or taken back to it.",
        sources=("Lu, Moffat and Culpepper 2016",),
    ),
    Rule(
        id="missing-topics",
        kind="note",
        when=(are.MISSING,),
        here="{p.most_missing.name} has no results for {p.most_missing.missing} of {p.topics:topic}.",
        why="They score 0 and count. Where it was never asked, --topics both leaves them out, and then runs may be"
        " averaged over different topics.",
        sources=("Buckley and Voorhees 2005",),
    ),
    Rule(
        id="barren-topics",
        kind="note",
        when=(are.BARREN,),
        here="{p.barren} of {p.topics:topic} have no document of grade {p.level:g} or more.",
        why="They score 0 for every system, and pull all means down alike. TREC leaves such topics out; undefined=skip"
        " in a measure does.",
        sources=("Voorhees 2004",),
    ),
    Rule(
        id="negative-grades",
        kind="note",
        when=(are.NEGATIVE,),
        here="With a negative grade: {p.negative:pair}.",
        why="Never relevant, and no gain; Bpref, judged_only and Unjudged take them for unjudged. In the TREC Web"
        " tracks -2 is junk, which was judged; in samples for InfAP -1 is what was pooled and not judged. Make junk 0"
        " where you use those measures.",
        sources=("Clarke, Craswell and Voorhees 2012", "Yilmaz and Aslam 2006"),
    ),
    Rule(
        id="several-labels",
        kind="note",
        when=(are.SEVERAL_LABELS,),
        here="With several judgments: {p.repeated:pair}, under {p.iterations} different iterations, which look like"
        " {p.labels}.",
        why="Measures that know of no subtopics or assessors take the highest grade. Whether these are subtopics or"
        " assessors, the file does not say.",
        sources=("Clarke et al. 2008", "Voorhees 2000"),
    ),
    Rule(
        id="mean-hides",
        kind="note",
        when=(are.SEVERAL_TOPICS,),
        here="{p.topics:topic}, relevant documents in each: {p.relevant}.",
        why="A mean hides which topics fail. Look at --per-topic, and at kinds of topics apart; GMAP is a mean that the"
        " worst topics rule.",
        sources=("Voorhees 2004", "Robertson 2006", "Mackie, Dalton and Yates 2021"),
    ),
)
