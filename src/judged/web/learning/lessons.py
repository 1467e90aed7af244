"""The lessons: what each says, and what is computed for it. Numbers are never typed: see `Lesson.filled`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar
from urllib.parse import urlencode

from judged.answer import TEXT, YES_NO, Column, Table, number
from judged.errors import InputError
from judged.measures import parse
from judged.web.learning.examples import ExamplePage, typed_example
from judged.web.learning.lesson import Lesson, score

LESSONS = (
    Lesson(
        key="judged-list",
        title="A judged list",
        idea="A ranking, and beside each document what somebody said of it: that is all a measure sees.",
        text=(
            """A system returned five documents for a query, the best first. People read some of them and said
            whether they help. Measures see neither the texts nor the system's scores, only this: at each rank a
            relevant document, one that is not, or one that nobody looked at.""",
            """Judgments also know documents that are *not* on the list. Here one relevant document was never
            returned. You cannot see it in the ranking, but whoever asks how much was found has to count it.""",
        ),
        typed="1,0,-,1,0",
        missing="1",
        measures=("SetR", "NumRelRet", "NumRel", "Judged@5", "P@5"),
        change="Leave the ranking as it is, and let a judge find one more relevant document elsewhere.",
        ask="Nothing on the page changed. Which numbers do?",
        answer="""`SetR` falls from {SetR:.3f} to {after SetR:.3f}: there is more to find, and the same was found.
            What looks only at the page, such as `P@5`, cannot know.""",
        after="1,0,-,1,0",
        after_missing="1,1",
        further=("NumRel", "NumRelRet", "Judged"),
    ),
    Lesson(
        key="relevant-or-graded",
        title="Relevant, or how relevant",
        idea="Some measures ask whether a document is relevant, others how much.",
        text=(
            """A judgment may be yes or no, or a grade: 0 not relevant, 1 related, 2 good, 3 perfect. Binary
            measures turn a grade into yes or no at a level; graded ones turn it into a gain.""",
            """Where *relevant* begins is a choice. `AP` of this list is {AP:.3f}; if only grade 2 and above counts,
            `AP(rel=2)`, it is {AP(rel=2):.3f}. So the level belongs to the name of the number.""",
        ),
        typed="3,2,0,1,2",
        measures=("nDCG@5", "AP", "AP(rel=2)", "P@5"),
        change="Exchange the perfect document at rank 1 with the merely related one at rank 4.",
        ask="The page got clearly worse. Does `AP` say so?",
        answer="""No: both documents are relevant, so `AP` stays {AP:.3f} and so does `P@5`. `nDCG@5` falls from
            {nDCG@5:.3f} to {after nDCG@5:.3f}.""",
        after="1,2,0,3,2",
        further=("nDCG", "AP", "CG"),
    ),
    Lesson(
        key="precision-and-recall",
        title="Precision and recall",
        idea="How much of what was returned is relevant, and how much of what is relevant was returned.",
        text=(
            """Both count the relevant documents found. Precision divides by the places looked at, recall by all
            that is relevant. Going further down, recall can only rise: here `R@1` to `R@8` are {R@1:.2f},
            {R@2:.2f}, {R@3:.2f}, {R@4:.2f}, {R@5:.2f}, {R@6:.2f}, {R@7:.2f}, {R@8:.2f}. Precision goes up and down.""",
            """F combines the two and is ruled by the smaller. With a precision of
            {SetP of 1,1,1,1,1,1,1,1,1,0 missing 1*81:.1f} and a recall of
            {SetR of 1,1,1,1,1,1,1,1,1,0 missing 1*81:.1f}, F1 is {SetF of 1,1,1,1,1,1,1,1,1,0 missing 1*81:.2f},
            nowhere near the middle.""",
        ),
        typed="0,1,0,1,1,0,1,0",
        measures=("SetP", "SetR", "P@8", "R@8", "P@4", "R@4"),
        change="Return two more documents behind the last, neither of them relevant.",
        ask="Is the result worse now?",
        answer="""It depends on who asks. `SetP` falls from {SetP:.3f} to {after SetP:.3f}; recall and everything
            cut at 8 stay as they are.""",
        after="0,1,0,1,1,0,1,0,0,0",
        errors=(
            (
                "Recall with the number of *returned* documents below the line, or the fraction upside down.",
                """Below the line stands all that is relevant. `R@5` is {R@5:.2f}, three of four; a share that comes
                out above 1 was turned over. What divides by the returned is precision.""",
            ),
        ),
        further=("P", "R", "F", "Success"),
    ),
    Lesson(
        key="rank-matters",
        title="Rank matters",
        idea="Two pages with the same documents are not the same page.",
        text=(
            """Precision and recall at k do not see the order of the first k. Average precision does: it takes the
            precision at each relevant document and averages over *all* that are relevant. One that was never
            returned adds nothing, but is counted.""",
            "Reciprocal rank sees still less and something else: only where the first relevant document stands.",
        ),
        typed="1,0,1,0,1",
        missing="1",
        measures=("AP", "P@5", "R@5", "RR", "nDCG@5"),
        change="Swap ranks 1 and 2.",
        ask="Which of these numbers move, and which most?",
        answer="""`AP` falls from {AP:.3f} to {after AP:.3f} and `RR` is halved to {after RR:.1f}, but `P@5` stays
            {after P@5:.1f}. What happens at the very top decides rank-sensitive measures.""",
        after="0,1,1,0,1",
        after_missing="1",
        errors=(
            (
                "The AP of this list is given as {AP(norm=returned):.3f}.",
                """It is {AP:.3f}. There are four relevant documents, and the sum of the precisions is divided by
                four. Who divides by the three that were found gets `AP(norm=returned)`, which rewards not finding.""",
            ),
        ),
        further=("AP", "RR", "Rprec"),
    ),
    Lesson(
        key="gain-and-discount",
        title="Gain and discount",
        idea="What a document is worth, less the further down it stands, as a share of the best possible.",
        text=(
            """Each grade has a gain, each rank a discount. DCG divides the one by the other and adds up; nDCG
            divides that by the DCG of the best order of all judged documents, so that 1 means it could not be
            better.""",
            """Two gains are common: the grade itself, and 2^grade - 1. They are different measures: this list has
            `nDCG@5` {nDCG@5:.3f} and `nDCG(gain=exp2)@5` {nDCG(gain=exp2)@5:.3f}.""",
        ),
        typed="3,2,0,1,2",
        measures=(
            "nDCG(gain=exp2)@5",
            "DCG(gain=exp2)@5",
            "IdealDCG(gain=exp2)@5",
            "nDCG@5",
            "DCG@5",
            "DCG(discount=original)@5",
        ),
        change="Exchange ranks 1 and 2, so that the perfect document comes second.",
        ask="Will every DCG fall?",
        answer="""Not the original one of 2002: it does not discount rank 2, so it stays
            {after DCG(discount=original)@5:.3f}. With log2(rank + 1), `DCG@5` falls from {DCG@5:.3f} to
            {after DCG@5:.3f}.""",
        after="2,3,0,1,2",
        errors=(
            (
                "The nDCG of this list with exponential gain is given as {nDCG(gain=exp2)@5 of 3,2,2,1,0:.2f}.",
                """It is {nDCG(gain=exp2)@5:.3f}: the DCG is {DCG(gain=exp2)@5:.3f} and that of the ideal order
                {IdealDCG(gain=exp2)@5:.3f}. A document of grade 2 stands below one of grade 1.""",
            ),
            (
                "nDCG is printed as the ideal DCG divided by the DCG.",
                """It is the other way round: DCG divided by the ideal, so never above
                {nDCG(gain=exp2)@5 of 3,2,2,1,0:.0f}.""",
            ),
            (
                "DCG is spoken of as if there were only one discount.",
                """In the first paper ranks 1 and 2 are not discounted, then it is log2(rank). For its example, 3,
                2, 3, 0, 0, 1, 2, 2, 3, 0, `DCG(discount=original)@10` is
                {DCG(discount=original)@10 of 3,2,3,0,0,1,2,2,3,0:.2f} and nDCG, were these ten all that was judged,
                {nDCG(discount=original)@10 of 3,2,3,0,0,1,2,2,3,0:.2f}; with log2(rank + 1), `DCG@10` is
                {DCG@10 of 3,2,3,0,0,1,2,2,3,0:.2f}.""",
            ),
        ),
        further=("nDCG", "DCG", "IdealDCG", "Q"),
    ),
    Lesson(
        key="user-models",
        title="A measure is a model of somebody reading",
        idea="Who is thought to read the page decides which page is better.",
        text=(
            """Every discount is a claim about people: how many still read at rank 5? Rank-biased precision says it
            openly. After each document the reader goes on with probability p: with p = 0.5 hardly anyone sees rank
            5, with p = 0.95 most do.""",
            """Other models watch what was found. In ERR a reader who is satisfied stops: after one perfect
            document, four more of them lift `ERR(max=3)` only from {ERR(max=3) of 3,0,0,0,0:.3f} to
            {ERR(max=3) of 3,3,3,3,3:.3f}, while `DCG(gain=exp2)@5` goes from {DCG(gain=exp2)@5 of 3,0,0,0,0:.1f} to
            {DCG(gain=exp2)@5 of 3,3,3,3,3:.1f}.""",
        ),
        typed="1,0,0,0,1,1,1,1,1,1",
        measures=("RBP(p=0.8)", "RBP(p=0.5)", "RBP(p=0.95)", "RR", "P@10"),
        change="Take the first document away, and let what follows begin at rank 3.",
        ask="Is that page better or worse?",
        answer="""Worse for the hasty reader, from {RBP(p=0.5):.3f} to {after RBP(p=0.5):.3f} at p = 0.5; better for
            the patient one, from {RBP(p=0.95):.3f} to {after RBP(p=0.95):.3f} at p = 0.95. `P@10` sees no
            difference. None of them is wrong: they are different people.""",
        after="0,0,1,1,1,1,1,1,1,0",
        further=("RBP", "ERR", "INST"),
    ),
    Lesson(
        key="unjudged",
        title="Documents that nobody judged",
        idea="Not judged is not the same as not relevant, but most measures count it so.",
        text=(
            """Nobody judges everything. A new system finds documents that no earlier one did, and they have no
            judgment. Most measures take them for not relevant, and the new system looks worse than it is.""",
            """Here ranks 1 and 3 are unjudged. `AP` is {AP:.3f} as it stands, but could be anything from
            {open low AP:.3f} to {open high AP:.3f}. Leaving them out, `AP(judged_only=true)`, gives
            {AP(judged_only=true):.3f}: also a guess. So always look at `Judged@5`, the share that was judged:
            {Judged@5:.1f}.""",
        ),
        typed="-,1,-,1,0",
        missing="1",
        measures=("AP", "AP(judged_only=true)", "Bpref", "RBP(p=0.8)", "RBPResidual(p=0.8)", "Judged@5"),
        change="Let somebody judge the document at rank 1: it is relevant.",
        ask="The system is the same. How much better does it look?",
        answer="""`AP` goes from {AP:.3f} to {after AP:.3f}. `RBPResidual(p=0.8)` said beforehand how much was open:
            {RBPResidual(p=0.8):.3f}, now {after RBPResidual(p=0.8):.3f}.""",
        after="1,1,-,1,0",
        after_missing="1",
        further=("Judged", "Bpref", "InfAP", "RBPResidual"),
    ),
    Lesson(
        key="ties",
        title="Ties",
        idea="Where scores are equal the ranking is an accident, and so is the number.",
        text=(
            """A run gives each document a score, and the ranking comes from sorting. If three documents have the
            same score, something else puts them in order: the file, the name of the document, the tool.""",
            """If all three below have one score, their `RR` is whatever that order makes it, from {tied low RR:.3f}
            to {tied high RR:.0f}. Over all orders it is {tied mean RR:.3f} in the mean. judged sorts equal
            scores by a rule that is printed with the result, and can show the range.""",
        ),
        typed="1,0,0",
        measures=("RR", "AP", "P@1", "nDCG@3"),
        change="Sort the same three documents, with the same scores, the other way round.",
        ask="Same system, same scores, same judgments. Same result?",
        answer="""`RR` is {tied high RR:.0f} one way and {tied low RR:.3f} the other, `P@1` {P@1:.0f} or
            {after P@1:.0f}. Compare two tools on a run with ties, and this is what you may be comparing.""",
        after="0,0,1",
        further=("RR", "Success", "P"),
    ),
    Lesson(
        key="means-and-luck",
        title="Means and luck",
        idea="A score belongs to one topic; a mean hides how they differ, and how much of it is chance.",
        text=(
            """Three topics, three lists: their `AP` is {AP:.3f}, {AP of 0,0,1,0,0,0,1 missing 1:.3f} and
            {AP of 0,1,0,0,1,0,0,1 missing 1,1,1,1:.3f}. The mean, known as MAP, is {topics mean AP:.3f}, which
            describes none of them. With three topics the 95% interval goes from {topics low AP:.2f} to
            {topics high AP:.2f}: nearly everything is possible.""",
            """So before saying that one system is better: how many topics, how far apart are they, and would other
            topics have said the same? The list below is the first topic.""",
        ),
        typed="1,1,0,0,1,0,0,0,1",
        measures=("AP", "RR", "P@5"),
        change="Move one document of this one topic: rank 1 goes to rank 3.",
        ask="How far does the mean of the three topics move?",
        answer="""From {topics mean AP:.3f} to {topics after AP:.3f}: one document of one topic. The geometric mean,
            `GMAP`, goes from {topics mean GMAP:.3f} to {topics after GMAP:.3f}.""",
        after="0,1,1,0,1,0,0,0,1",
        other_topics=(("0,0,1,0,0,0,1", "1"), ("0,1,0,0,1,0,0,1", "1,1,1,1")),
        further=("AP", "GMAP"),
    ),
)
"""In the order in which the ideas build on one another."""

STEPS: list[dict[str, Any]] = [
    {"key": lesson.key, "number": number, "title": lesson.title, "idea": lesson.idea}
    for number, lesson in enumerate(LESSONS, 1)
]
"""The table of contents."""


class LessonPage(ExamplePage):
    """A lesson, worked out. Texts are a little Markdown: code between backticks."""

    kind: ClassVar[str] = "lesson"


@lru_cache(maxsize=len(LESSONS))
def lesson_page(key: str) -> LessonPage:
    """Work a lesson out.

    >>> print(*lesson_page("rank-matters").table().grid().rows[:2])
    ('AP', '0.567', '0.442', 'yes') ('P@5', '0.600', '0.600', 'no')
    """
    at = next((at for at, lesson in enumerate(LESSONS) if lesson.key == key), None)
    if at is None:
        raise InputError(f"there is no lesson {key!r}", fix=f"one of {', '.join(lesson.key for lesson in LESSONS)}")
    lesson = LESSONS[at]
    first = parse(lesson.measures[0])
    changed = typed_example(first, lesson.after, lesson.after_missing)
    address = {"list": lesson.after, "missing": lesson.after_missing, "before": lesson.typed}
    address |= {"before_missing": lesson.missing, "k": "5"}
    before = [score(name, lesson.typed, lesson.missing) for name in lesson.measures]
    after = [score(name, lesson.after, lesson.after_missing) for name in lesson.measures]
    moves = [abs(new - old) > 1e-12 for old, new in zip(before, after, strict=True)]
    moved = (
        Column("measure", lesson.measures, TEXT, "Measure"),
        Column("family", [parse(name).entry.name for name in lesson.measures], only="data"),
        Column("before", before, number(3), "Before"),
        Column("after", after, number(3), "After"),
        Column("moves", moves, YES_NO, "Moved"),
    )
    about = {
        **STEPS[at],
        "of": len(LESSONS),
        "text": [lesson.filled(text) for text in lesson.text],
        "change": lesson.change,
        "ask": lesson.ask,
        "answer": lesson.filled(lesson.answer),
        "changed": {"rows": changed.rows, "gone": changed.gone},
        "evaluator": f"/evaluator?{urlencode({name: text for name, text in address.items() if text}, safe=',*')}",
        "errors": [{"wrong": lesson.filled(wrong), "right": lesson.filled(right)} for wrong, right in lesson.errors],
        "further": lesson.further,
        "previous": STEPS[at - 1] if at else None,
        "next": STEPS[at + 1] if at + 1 < len(STEPS) else None,
    }
    kinds = ["moves" if moved else "still" for moved in moves]
    table = Table("measures", moved, "Before and after", kinds=kinds)
    return LessonPage(about, (table,), example=typed_example(first, lesson.typed, lesson.missing))
