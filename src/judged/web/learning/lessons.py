"""The lessons: what each says, and what is computed for it. Numbers are never typed; ``{name:.3f}`` puts one in."""

from __future__ import annotations

from judged.web.learning.lesson import Change, KnownError, Lesson
from judged.web.learning.numbers import Mean, Open, Score, Tied

_BOX = "0,1,0,1,1,0,1,0"
_THREE = (("1,1,0,0,1,0,0,0,1", ""), ("0,0,1,0,0,0,1", "1"), ("0,1,0,0,1,0,0,1", "1,1,1,1"))
_THREE_WORSE = (("0,1,1,0,1,0,0,0,1", ""), *_THREE[1:])
_FIRST_PAPER = "3,2,3,0,0,1,2,2,3,0"

LESSONS = (
    Lesson(
        key="judged-list",
        title="A judged list",
        idea="A ranking, and beside each document what somebody said of it: that is all a measure sees.",
        text=(
            (
                "A system returned five documents for a query, the best first. People read some of them and said"
                " whether they help. Measures see neither the texts nor the system's scores, only this: at each rank a"
                " relevant document, one that is not, or one that nobody looked at."
            ),
            (
                "Judgments also know documents that are *not* on the list. Here one relevant document was never"
                " returned. You cannot see it in the ranking, but whoever asks how much was found has to count it."
            ),
        ),
        typed="1,0,-,1,0",
        missing="1",
        measures=("SetR", "NumRelRet", "NumRel", "Judged@5", "P@5"),
        change=Change(
            what="Leave the ranking as it is, and let a judge find one more relevant document elsewhere.",
            ask="Nothing on the page changed. Which numbers do?",
            answer="`SetR` falls from {before:.3f} to {after:.3f}: there is more to find, and the same was found."
            " What looks only at the page, such as `P@5`, cannot know.",
            typed="1,0,-,1,0",
            missing="1,1",
        ),
        numbers={"before": Score("SetR", "1,0,-,1,0", "1"), "after": Score("SetR", "1,0,-,1,0", "1,1")},
        further=("NumRel", "NumRelRet", "Judged"),
    ),
    Lesson(
        key="relevant-or-graded",
        title="Relevant, or how relevant",
        idea="Some measures ask whether a document is relevant, others how much.",
        text=(
            (
                "A judgment may be yes or no, or a grade: 0 not relevant, 1 related, 2 good, 3 perfect. Binary measures"
                " turn a grade into yes or no at a level; graded ones turn it into a gain."
            ),
            (
                "Where *relevant* begins is a choice. `AP` of this list is {ap:.3f}; if only grade 2 and above counts,"
                " `AP(rel=2)`, it is {ap2:.3f}. So the level belongs to the name of the number."
            ),
        ),
        typed="3,2,0,1,2",
        missing="",
        measures=("nDCG@5", "AP", "AP(rel=2)", "P@5"),
        change=Change(
            what="Exchange the perfect document at rank 1 with the merely related one at rank 4.",
            ask="The page got clearly worse. Does `AP` say so?",
            answer="No: both documents are relevant, so `AP` stays {ap:.3f} and so does `P@5`. `nDCG@5` falls from"
            " {ndcg:.3f} to {ndcg_after:.3f}.",
            typed="1,2,0,3,2",
        ),
        numbers={
            "ap": Score("AP", "3,2,0,1,2"),
            "ap2": Score("AP(rel=2)", "3,2,0,1,2"),
            "ndcg": Score("nDCG@5", "3,2,0,1,2"),
            "ndcg_after": Score("nDCG@5", "1,2,0,3,2"),
        },
        further=("nDCG", "AP", "CG"),
    ),
    Lesson(
        key="precision-and-recall",
        title="Precision and recall",
        idea="How much of what was returned is relevant, and how much of what is relevant was returned.",
        text=(
            (
                "Both count the relevant documents found. Precision divides by the places looked at, recall by all that"
                " is relevant. Going further down, recall can only rise: here `R@1` to `R@8` are {r1:.2f}, {r2:.2f},"
                " {r3:.2f}, {r4:.2f}, {r5:.2f}, {r6:.2f}, {r7:.2f}, {r8:.2f}. Precision goes up and down."
            ),
            (
                "F combines the two and is ruled by the smaller. With a precision of {p:.1f} and a recall of {r:.1f},"
                " F1 is {f:.2f}, nowhere near the middle."
            ),
        ),
        typed=_BOX,
        missing="",
        measures=("SetP", "SetR", "P@8", "R@8", "P@4", "R@4"),
        change=Change(
            what="Return two more documents behind the last, neither of them relevant.",
            ask="Is the result worse now?",
            answer="It depends on who asks. `SetP` falls from {p_before:.3f} to {p_after:.3f}; recall and everything"
            " cut at 8 stay as they are.",
            typed=_BOX + ",0,0",
        ),
        errors=(
            KnownError(
                "Recall with the number of *returned* documents below the line, or the fraction upside down.",
                "Below the line stands all that is relevant. `R@5` is {r5:.2f}, three of four; a share that comes out"
                " above 1 was turned over. What divides by the returned is precision.",
            ),
        ),
        numbers={
            **{f"r{k}": Score(f"R@{k}", _BOX) for k in range(1, 9)},
            "p": Score("SetP", "1,1,1,1,1,1,1,1,1,0", "1*81"),
            "r": Score("SetR", "1,1,1,1,1,1,1,1,1,0", "1*81"),
            "f": Score("SetF", "1,1,1,1,1,1,1,1,1,0", "1*81"),
            "p_before": Score("SetP", _BOX),
            "p_after": Score("SetP", _BOX + ",0,0"),
        },
        further=("P", "R", "F", "Success"),
    ),
    Lesson(
        key="rank-matters",
        title="Rank matters",
        idea="Two pages with the same documents are not the same page.",
        text=(
            (
                "Precision and recall at k do not see the order of the first k. Average precision does: it takes the"
                " precision at each relevant document and averages over *all* that are relevant. One that was never"
                " returned adds nothing, but is counted."
            ),
            "Reciprocal rank sees still less and something else: only where the first relevant document stands.",
        ),
        typed="1,0,1,0,1",
        missing="1",
        measures=("AP", "P@5", "R@5", "RR", "nDCG@5"),
        change=Change(
            what="Swap ranks 1 and 2.",
            ask="Which of these numbers move, and which most?",
            answer="`AP` falls from {ap:.3f} to {ap_after:.3f} and `RR` is halved to {rr_after:.1f}, but `P@5` stays"
            " {p:.1f}. What happens at the very top decides rank-sensitive measures.",
            typed="0,1,1,0,1",
            missing="1",
        ),
        errors=(
            KnownError(
                "The AP of this list is given as {wrong:.3f}.",
                "It is {ap:.3f}. There are four relevant documents, and the sum of the precisions is divided by four."
                " Who divides by the three that were found gets `AP(norm=returned)`, which rewards not finding.",
            ),
        ),
        numbers={
            "ap": Score("AP", "1,0,1,0,1", "1"),
            "ap_after": Score("AP", "0,1,1,0,1", "1"),
            "rr_after": Score("RR", "0,1,1,0,1", "1"),
            "p": Score("P@5", "0,1,1,0,1", "1"),
            "wrong": Score("AP(norm=returned)", "1,0,1,0,1", "1"),
        },
        further=("AP", "RR", "Rprec"),
    ),
    Lesson(
        key="gain-and-discount",
        title="Gain and discount",
        idea="What a document is worth, less the further down it stands, as a share of the best possible.",
        text=(
            (
                "Each grade has a gain, each rank a discount. DCG divides the one by the other and adds up; nDCG"
                " divides that by the DCG of the best order of all judged documents, so that 1 means it could not be"
                " better."
            ),
            (
                "Two gains are common: the grade itself, and 2^grade - 1. They are different measures: this list has"
                " `nDCG@5` {linear:.3f} and `nDCG(gain=exp2)@5` {exp2:.3f}."
            ),
        ),
        typed="3,2,0,1,2",
        missing="",
        measures=(
            "nDCG(gain=exp2)@5",
            "DCG(gain=exp2)@5",
            "IdealDCG(gain=exp2)@5",
            "nDCG@5",
            "DCG@5",
            "DCG(discount=original)@5",
        ),
        change=Change(
            what="Exchange ranks 1 and 2, so that the perfect document comes second.",
            ask="Will every DCG fall?",
            answer="Not the original one of 2002: it does not discount rank 2, so it stays {original:.3f}. With"
            " log2(rank + 1), `DCG@5` falls from {dcg:.3f} to {dcg_after:.3f}.",
            typed="2,3,0,1,2",
        ),
        errors=(
            KnownError(
                "The nDCG of this list with exponential gain is given as {perfect:.2f}.",
                "It is {exp2:.3f}: the DCG is {exp2_dcg:.3f} and that of the ideal order {ideal:.3f}. A document of"
                " grade 2 stands below one of grade 1.",
            ),
            KnownError(
                "nDCG is printed as the ideal DCG divided by the DCG.",
                "It is the other way round: DCG divided by the ideal, so never above {perfect:.0f}.",
            ),
            KnownError(
                "DCG is spoken of as if there were only one discount.",
                "In the first paper ranks 1 and 2 are not discounted, then it is log2(rank). For its example,"
                " 3, 2, 3, 0, 0, 1, 2, 2, 3, 0, `DCG(discount=original)@10` is {paper:.2f} and nDCG, were"
                " these ten all that was judged, {paper_n:.2f}; with log2(rank + 1), `DCG@10` is {newer:.2f}.",
            ),
        ),
        numbers={
            "linear": Score("nDCG@5", "3,2,0,1,2"),
            "exp2": Score("nDCG(gain=exp2)@5", "3,2,0,1,2"),
            "exp2_dcg": Score("DCG(gain=exp2)@5", "3,2,0,1,2"),
            "ideal": Score("IdealDCG(gain=exp2)@5", "3,2,0,1,2"),
            "perfect": Score("nDCG(gain=exp2)@5", "3,2,2,1,0"),
            "original": Score("DCG(discount=original)@5", "2,3,0,1,2"),
            "dcg": Score("DCG@5", "3,2,0,1,2"),
            "dcg_after": Score("DCG@5", "2,3,0,1,2"),
            "paper": Score("DCG(discount=original)@10", _FIRST_PAPER),
            "paper_n": Score("nDCG(discount=original)@10", _FIRST_PAPER),
            "newer": Score("DCG@10", _FIRST_PAPER),
        },
        further=("nDCG", "DCG", "IdealDCG", "Q"),
    ),
    Lesson(
        key="user-models",
        title="A measure is a model of somebody reading",
        idea="Who is thought to read the page decides which page is better.",
        text=(
            (
                "Every discount is a claim about people: how many still read at rank 5? Rank-biased precision says it"
                " openly. After each document the reader goes on with probability p: with p = 0.5 hardly anyone sees"
                " rank 5, with p = 0.95 most do."
            ),
            (
                "Other models watch what was found. In ERR a reader who is satisfied stops: after one perfect document,"
                " four more of them lift `ERR(max=3)` only from {err:.3f} to {err_more:.3f}, while `DCG(gain=exp2)@5`"
                " goes from {dcg:.1f} to {dcg_more:.1f}."
            ),
        ),
        typed="1,0,0,0,1,1,1,1,1,1",
        missing="",
        measures=("RBP(p=0.8)", "RBP(p=0.5)", "RBP(p=0.95)", "RR", "P@10"),
        change=Change(
            what="Take the first document away, and let what follows begin at rank 3.",
            ask="Is that page better or worse?",
            answer="Worse for the hasty reader, from {hasty:.3f} to {hasty_after:.3f} at p = 0.5; better for the"
            " patient one, from {patient:.3f} to {patient_after:.3f} at p = 0.95. `P@10` sees no difference. None of"
            " them is wrong: they are different people.",
            typed="0,0,1,1,1,1,1,1,1,0",
        ),
        numbers={
            "err": Score("ERR(max=3)", "3,0,0,0,0"),
            "err_more": Score("ERR(max=3)", "3,3,3,3,3"),
            "dcg": Score("DCG(gain=exp2)@5", "3,0,0,0,0"),
            "dcg_more": Score("DCG(gain=exp2)@5", "3,3,3,3,3"),
            "hasty": Score("RBP(p=0.5)", "1,0,0,0,1,1,1,1,1,1"),
            "hasty_after": Score("RBP(p=0.5)", "0,0,1,1,1,1,1,1,1,0"),
            "patient": Score("RBP(p=0.95)", "1,0,0,0,1,1,1,1,1,1"),
            "patient_after": Score("RBP(p=0.95)", "0,0,1,1,1,1,1,1,1,0"),
        },
        further=("RBP", "ERR", "INST"),
    ),
    Lesson(
        key="unjudged",
        title="Documents that nobody judged",
        idea="Not judged is not the same as not relevant, but most measures count it so.",
        text=(
            (
                "Nobody judges everything. A new system finds documents that no earlier one did, and they have no"
                " judgment. Most measures take them for not relevant, and the new system looks worse than it is."
            ),
            (
                "Here ranks 1 and 3 are unjudged. `AP` is {ap:.3f} as it stands, but could be anything from {low:.3f}"
                " to {high:.3f}. Leaving them out, `AP(judged_only=true)`, gives {condensed:.3f}: also a guess. So"
                " always look at `Judged@5`, the share that was judged: {judged:.1f}."
            ),
        ),
        typed="-,1,-,1,0",
        missing="1",
        measures=("AP", "AP(judged_only=true)", "Bpref", "RBP(p=0.8)", "RBPResidual(p=0.8)", "Judged@5"),
        change=Change(
            what="Let somebody judge the document at rank 1: it is relevant.",
            ask="The system is the same. How much better does it look?",
            answer="`AP` goes from {ap:.3f} to {ap_after:.3f}. `RBPResidual(p=0.8)` said beforehand how much was open:"
            " {residual:.3f}, now {residual_after:.3f}.",
            typed="1,1,-,1,0",
            missing="1",
        ),
        numbers={
            "ap": Score("AP", "-,1,-,1,0", "1"),
            "low": Open("AP", "-,1,-,1,0", "1", "low"),
            "high": Open("AP", "-,1,-,1,0", "1", "high"),
            "condensed": Score("AP(judged_only=true)", "-,1,-,1,0", "1"),
            "judged": Score("Judged@5", "-,1,-,1,0", "1"),
            "ap_after": Score("AP", "1,1,-,1,0", "1"),
            "residual": Score("RBPResidual(p=0.8)", "-,1,-,1,0", "1"),
            "residual_after": Score("RBPResidual(p=0.8)", "1,1,-,1,0", "1"),
        },
        further=("Judged", "Bpref", "InfAP", "RBPResidual"),
    ),
    Lesson(
        key="ties",
        title="Ties",
        idea="Where scores are equal the ranking is an accident, and so is the number.",
        text=(
            (
                "A run gives each document a score, and the ranking comes from sorting. If three documents have the"
                " same score, something else puts them in order: the file, the name of the document, the tool."
            ),
            (
                "If all three below have one score, their `RR` is whatever that order makes it, from {low:.3f} to"
                " {high:.0f}. Over all orders it is {mean:.3f} in the mean. judged sorts equal scores by a rule that is"
                " printed with the result, and can show the range."
            ),
        ),
        typed="1,0,0",
        missing="",
        measures=("RR", "AP", "P@1", "nDCG@3"),
        change=Change(
            what="Sort the same three documents, with the same scores, the other way round.",
            ask="Same system, same scores, same judgments. Same result?",
            answer="`RR` is {high:.0f} one way and {low:.3f} the other, `P@1` {p:.0f} or {p_after:.0f}. Compare two"
            " tools on a run with ties, and this is what you may be comparing.",
            typed="0,0,1",
        ),
        numbers={
            "low": Tied("RR", "1,0,0", "low"),
            "high": Tied("RR", "1,0,0", "high"),
            "mean": Tied("RR", "1,0,0", "expected"),
            "p": Score("P@1", "1,0,0"),
            "p_after": Score("P@1", "0,0,1"),
        },
        further=("RR", "Success", "P"),
    ),
    Lesson(
        key="means-and-luck",
        title="Means and luck",
        idea="A score belongs to one topic; a mean hides how they differ, and how much of it is chance.",
        text=(
            (
                "Three topics, three lists: their `AP` is {one:.3f}, {two:.3f} and {three:.3f}. The mean, known as MAP,"
                " is {mean:.3f}, which describes none of them. With three topics the 95% interval goes from {low:.2f}"
                " to {high:.2f}: nearly everything is possible."
            ),
            (
                "So before saying that one system is better: how many topics, how far apart are they, and would other"
                " topics have said the same? The list below is the first topic."
            ),
        ),
        typed="1,1,0,0,1,0,0,0,1",
        missing="",
        measures=("AP", "RR", "P@5"),
        change=Change(
            what="Move one document of this one topic: rank 1 goes to rank 3.",
            ask="How far does the mean of the three topics move?",
            answer="From {mean:.3f} to {mean_after:.3f}: one document of one topic. The geometric mean, `GMAP`, goes"
            " from {geometric:.3f} to {geometric_after:.3f}.",
            typed="0,1,1,0,1,0,0,0,1",
        ),
        numbers={
            "one": Score("AP", *_THREE[0]),
            "two": Score("AP", *_THREE[1]),
            "three": Score("AP", *_THREE[2]),
            "mean": Mean("AP", _THREE),
            "low": Mean("AP", _THREE, "low"),
            "high": Mean("AP", _THREE, "high"),
            "mean_after": Mean("AP", _THREE_WORSE),
            "geometric": Mean("GMAP", _THREE),
            "geometric_after": Mean("GMAP", _THREE_WORSE),
        },
        further=("AP", "GMAP"),
    ),
)
"""In the order in which the ideas build on one another."""
