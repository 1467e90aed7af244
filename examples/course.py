"""Print a course on classic evaluation measures, with common errors of teaching material.

    python examples/course.py          all lessons, with their numbers
    python examples/course.py 3        one lesson, each number step by step

All numbers are computed. The program fails if a number differs from the number in the lesson.
"""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass

import judged
from judged.scoring.measures import parse


@dataclass(frozen=True)
class Score:
    """A list of grades in rank order, with the grades of missing documents, and its expected score as text."""

    measure: str
    grades: list[int]
    value: str
    missing: tuple[int, ...] = ()

    def check(self) -> float:
        """Compute the score; raise an error if it differs from the lesson."""
        score = parse(self.measure).of_list(self.grades, missing=list(self.missing))
        decimals = len(self.value.partition(".")[2])
        if f"{score:.{decimals}f}" != self.value:
            raise ValueError(f"{self.measure} of {self.grades} is {score}, not {self.value}")
        return score

    def working(self) -> object:
        """Return the calculation of the score, step by step."""
        run = {"list": [f"d{rank}" for rank in range(1, len(self.grades) + 1)]}
        qrels = {"list": dict(zip(run["list"], self.grades, strict=True))}
        qrels["list"] |= {f"missing{number}": grade for number, grade in enumerate(self.missing, 1)}
        return judged.explain(qrels, run, self.measure)


@dataclass(frozen=True)
class Lesson:
    """A common claim, the correction, and the numbers that prove it."""

    title: str
    claim: str
    truth: str
    scores: tuple[Score, ...]


CATS = ([0, 1, 0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0, 0, 1])  # "cat in a box", three engines
GRADED = [3, 2, 0, 1, 2]
ORIGINAL = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0]  # the list of Järvelin and Kekäläinen

LESSONS = (
    Lesson(
        "The denominator of recall",
        "Recall is the number of relevant results over the number of results.",
        "That is precision. Recall divides by the number of all relevant documents, retrieved or not.",
        (Score("P@4", CATS[0], "0.5"), Score("R@4", CATS[0], "0.5"), Score("R@4", CATS[0], "0.25", (1, 1, 1, 1))),
    ),
    Lesson(
        "The precisions in average precision",
        "The precision at ranks 5 and 7 of the first list is 0.4 and 0.43. The AP of the third is 0.22 or 0.23.",
        "Three of the first 5 results are relevant, and four of the first 7, so the precision is 0.6 and 0.571. The"
        " third AP is exactly 0.225, so both roundings occur. MAP, the mean of the three, is 0.4786.",
        (
            *(Score(f"P@{rank}", CATS[0], value) for rank, value in ((2, "0.5"), (4, "0.5"), (5, "0.6"), (7, "0.571"))),
            *(Score("AP@8", cats, value) for cats, value in zip(CATS, ("0.5429", "0.6679", "0.225"), strict=True)),
        ),
    ),
    Lesson(
        "The denominator of average precision",
        "AP is the mean of the precisions at the relevant documents that were retrieved.",
        "AP divides by the number of all relevant documents. A relevant document that was not retrieved counts as"
        " precision 0. Otherwise, a system could improve its AP by returning fewer documents.",
        (Score("AP", [1, 0, 1, 0, 1], "0.567", (1,)), Score("AP", [1, 0, 1, 0, 1], "0.756")),
    ),
    Lesson(
        "The ideal ranking of nDCG",
        "The list 3, 2, 0, 1, 2 has an nDCG of 1.00.",
        "The ideal order is 3, 2, 2, 1, 0. With exponential gain, the DCG of the list is 10.484, and the ideal DCG is"
        " 10.823. nDCG is DCG divided by ideal DCG; some printed formulas have the inverse.",
        (
            Score("DCG(gain=exp2)@5", GRADED, "10.484"),
            Score("DCG(gain=exp2)@5", [3, 2, 2, 1, 0], "10.823"),
            Score("nDCG(gain=exp2)@5", GRADED, "0.969"),
        ),
    ),
    Lesson(
        "nDCG with binary judgments",
        "nDCG needs graded judgments.",
        "Binary relevance is a scale with two grades, and nDCG is defined on it. The example has three of four relevant"
        " documents, at ranks 1, 3, and 5.",
        (Score("nDCG", [1, 0, 1, 0, 1], "0.7366", (1,)),),
    ),
    Lesson(
        "The ideal ranking of a short list",
        "nDCG@2 of the list is 0.39. nDCG@2 of the list is 0.41.",
        "Both values are correct, but for different lists. The ideal ranking contains all judged documents. A document"
        " with grade 4 is missing in the first list. In the second list, documents with grades 7 and 6 could be first.",
        (Score("nDCG@2", [0, 4], "0.387", (4,)), Score("nDCG@2", [0, 7, 2, 4, 6, 1, 4, 3], "0.409")),
    ),
    Lesson(
        "The discount of ranks",
        "The weight of ranks in nDCG decreases exponentially.",
        "The discount is logarithmic: rank 10 has 0.29 of the weight of rank 1. Rank-biased precision is exponential:"
        " with p = 0.8, rank 10 has 0.13 of the weight of rank 1.",
        (
            Score("DCG", [1], "1.00"),
            Score("DCG", [0] * 9 + [1], "0.29"),
            Score("RBP(p=0.8)", [1], "0.200"),
            Score("RBP(p=0.8)", [0] * 9 + [1], "0.027"),
        ),
    ),
    Lesson(
        "The base of the logarithm",
        "The base of the logarithm changes nDCG.",
        "The base multiplies DCG and the ideal DCG by the same factor, so nDCG does not change. Only the original"
        " discount depends on the base, because it does not discount ranks up to the base.",
        (
            Score("DCG@5", GRADED, "5.466"),
            Score("DCG(discount=ln)@5", GRADED, "7.886"),
            Score("nDCG@5", GRADED, "0.9602"),
            Score("nDCG(discount=ln)@5", GRADED, "0.9602"),
        ),
    ),
    Lesson(
        "Two discounts of DCG",
        "DCG divides the gain at rank r by log2(r).",
        "The first paper did this from rank 2, so ranks 1 and 2 have the same weight. Nearly all current programs"
        " divide by log2(r + 1). The values are not comparable.",
        (Score("DCG(discount=original)@10", ORIGINAL, "9.61"), Score("DCG@10", ORIGINAL, "8.32")),
    ),
)


def main() -> None:
    """Print all lessons, or selected lessons with each step."""
    selected = [int(number) for number in sys.argv[1:]]
    for number, lesson in enumerate(LESSONS, 1):
        if selected and number not in selected:
            continue
        print(f"\n{number}. {lesson.title}\n")
        print(textwrap.fill(f"You may read: {lesson.claim}", 100))
        print(textwrap.fill(f"In fact: {lesson.truth}", 100), end="\n\n")
        for score in lesson.scores:
            missing_note = f", {len(score.missing)} more relevant" if score.missing else ""
            print(f"  {score.measure:26} of {score.grades}{missing_note}: {score.check():.4f}")
            if selected:
                print(score.working())


if __name__ == "__main__":
    main()
