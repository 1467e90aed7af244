"""The evaluator, `judged explain --grades`, and Python read the same lists of grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import judged
from judged.data.grade_words import NOT_RELEVANT, RELEVANT, UNJUDGED, read_grades

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

RNRNR = [1.0, 0.0, 1.0, 0.0, 1.0]
LISTS = {
    "[R, N, R, N, R]": RNRNR,
    "(R, N, R, N, R)": RNRNR,
    "['R', 'N', 'R', 'N', 'R']": RNRNR,
    '["relevant", "not relevant", "relevant", "Not Relevant", "relevant"]': RNRNR,
    "R N R N R": RNRNR,
    "r n r n r": RNRNR,
    "RNRNR": RNRNR,
    "R, N, R, N, R": RNRNR,
    "R;N;R;N;R": RNRNR,
    "R\nN\nR\nN\nR": RNRNR,
    "1,0,1": [1, 0, 1],
    "1 0 1": [1, 0, 1],
    "[1,0,1]": [1, 0, 1],
    "[3, 2, 0, 1, 2]": [3, 2, 0, 1, 2],
    "3 0 - 1": [3, 0, None, 1],
    "RN-R": [1, 0, None, 1],
    "[R, N, ?, R]": [1, 0, None, 1],
    "[3, null, 1]": [3, None, 1],
    "👍👎👍": [1, 0, 1],
    "👍🏽 👎🏿 👍": [1, 0, 1],
    "✔️ ✗ ✔️": [1, 0, 1],
    "✅,❌,✅": [1, 0, 1],
    "relevant, not relevant, relevant": [1, 0, 1],
    "relevant not relevant non-relevant": [1, 0, 0],
    "yes no yes": [1, 0, 1],
    "true false": [1, 0],
    "[true, false]": [1, 0],
    "0.5 2.5": [0.5, 2.5],
}


@pytest.mark.parametrize("text", LISTS)
def test_all_read_the_same_list(text: str, run: Callable[..., Ended]) -> None:
    paste = pytest.importorskip("judged.interface.pages.evaluator.paste")
    assert read_grades(text) == LISTS[text]
    assert [document.grade for document in paste.read_pasted(text).documents] == LISTS[text]
    score = judged.explain_list(LISTS[text], "DCG@5").score
    assert judged.explain_list(text, "DCG@5").score == score
    assert judged.DCG(cutoff=5).of_list(text) == score
    assert run("explain", "--grades", text, "-m", "DCG@5").out == run("explain", "--grades", " ".join(
        "-" if grade is None else str(grade) for grade in LISTS[text]
    ), "-m", "DCG@5").out  # fmt: skip


def test_every_word_has_a_grade() -> None:
    for words, grade in ((RELEVANT, 1), (NOT_RELEVANT, 0), (UNJUDGED, None)):
        assert read_grades(list(words)) == [grade] * len(words)
        assert read_grades([word.upper() for word in words]) == [grade] * len(words)


@pytest.mark.parametrize(
    "grades", ["blue", "1 blue", "3 x 1", "a b", "101", "2010", "[1", 3, None, {"q": [1]}, ["a", "b"], b"1"]
)
def test_other_values_are_an_input_error(grades: Any, run: Callable[..., Ended]) -> None:
    calls: tuple[Callable[[Any], object], ...] = (
        lambda grades: judged.explain_list(grades, "AP"),
        judged.AP().of_list,
        judged.judge_list,
    )
    for call in calls:
        with pytest.raises(judged.InputError, match="`grades` must be a list of grades, got"):
            call(grades)
    if isinstance(grades, str):
        assert run("explain", "--grades", grades).code == 2


def test_missing_documents_are_read_in_the_same_way() -> None:
    assert judged.AP().of_list("R N", missing="RR") == judged.AP().of_list([1, 0], missing=[1, 1])
    with pytest.raises(judged.InputError, match="`missing` must be a list of grades"):
        judged.AP().of_list("R N", missing="lost")
