"""The shortcut that tells dicts with text keys from others must never take another for one."""

from __future__ import annotations

import random

import pytest

import judged
from judged.scoring.judging.mapping import _all_text


@pytest.mark.parametrize(
    "size", [1, 2, 5, 6, 10, 11, 21, 22, 42, 43, 85, 86, 170, 171, 341, 342, 682, 683, 1365, 1366, 5000]
)
def test_one_other_key_is_seen_wherever_it_stands(size: int) -> None:
    text = {f"d{at}": float(at) for at in range(size)}
    assert _all_text(text)
    for at in {0, size // 2, size - 1}:
        mixed = {(number if number == at else f"d{number}"): 1.0 for number in range(size)}
        for form in (mixed, dict(mixed), mixed.copy(), dict(list(mixed.items())), mixed | {}):
            assert not _all_text(form)


def test_dicts_that_grew_and_shrank() -> None:
    rng = random.Random(7)  # noqa: S311 - no secret
    docs: dict[object, float] = {}
    for step in range(4000):
        key = rng.choice([f"d{rng.randrange(300)}", rng.randrange(300)])
        if rng.random() < 0.45 and docs:
            docs.pop(rng.choice(list(docs)))
        else:
            docs[key] = 1.0
        if step % 20 == 0:
            assert _all_text(docs) == all(type(key) is str for key in docs)


def test_integer_and_text_of_one_document() -> None:
    with pytest.raises(judged.InputError, match="9 is returned twice"):
        judged.judge({"q": {"d": 1}}, {"q": {"d": 1.0, "9": 3.0, 9: 2.0}})
