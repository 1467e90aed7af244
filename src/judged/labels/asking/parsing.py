"""An answer of a model read strictly: it is one of the forms that were asked for, or it is none.

Blanks around it and one code fence around it are passed over, and letters may be of either case. Nothing else is: no
number is looked for in a sentence. Why an answer is none is told from its text, for counting alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.labels.asking.client import Reply
    from judged.labels.labels import Labels

Invalid: TypeAlias = Literal[
    "refusal", "empty", "cut", "several answers", "out of scale", "not an integer", "no answer", "another form"
]
INVALID: tuple[Invalid, ...] = get_args(Invalid)
"""Why an answer is none; a label that is not valid has it as its note."""
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_DECIMAL = re.compile(r"[-+]?\d*[.,]\d+")
_REFUSAL = re.compile(
    r"\b(sorry|i (cannot|can.?t|won.?t)|(unable|not able) to|decline to|as an ai|no puedo|lo siento|je ne peux"
    r"|désolé|kann (ich )?nicht|leider|non posso|не могу)\b|无法|不能|抱歉|できません|할 수 없",
    re.IGNORECASE,
)
_CUT = frozenset({"length", "max_tokens", "model_length"})  # how servers say that an answer was ended for its length
_LEAST = 0.5
"""An expected grade is told only where the grades have at least so much of the probability."""


class Reading(NamedTuple):
    """What an answer says: one of the forms, or why it is none."""

    form: str | None
    invalid: Invalid | None = None


def read(reply: Reply, forms: Sequence[str]) -> Reading:
    """Read an answer, which must be one of the forms.

    >>> from judged.labels.asking.client import Reply
    >>> [read(Reply(text), ("0", "1", "2")).form for text in ("2", " 2 ", "the grade is 2", "2.0", "7")]
    ['2', '2', None, None, None]
    """
    bare, invalid = text_of(reply)
    if invalid:
        return Reading(None, invalid)
    known = {form.casefold(): form for form in forms}
    if bare.isascii() and bare.casefold() in known:
        return Reading(known[bare.casefold()])
    return Reading(None, why_none(bare, forms))


def text_of(reply: Reply) -> tuple[str, Invalid | None]:
    """Give the text of an answer without what is passed over, or why there is none."""
    text = reply.content.strip()
    if reply.refused or reply.finish == "content_filter":
        return "", "refusal"
    if reply.finish.casefold() in _CUT:
        return "", "cut"
    fenced = _FENCE.fullmatch(text)
    return (fenced[1] if fenced else text).strip(), None if text else "empty"


def why_none(text: str, forms: Sequence[str]) -> Invalid:
    """Tell why a text is none of the forms."""
    numeric = bool(forms) and all(form.isdigit() for form in forms)
    if numeric and _WHOLE.fullmatch(text):
        return "out of scale"
    if numeric and _DECIMAL.fullmatch(text):
        return "not an integer"
    if _REFUSAL.search(text):
        return "refusal"
    words = _NUMBER.findall(text) if numeric else [word for word in re.findall(r"\w+", text) if word in forms]
    return "no answer" if not words else "several answers" if len(set(words)) > 1 else "another form"


def first_token(top: Mapping[str, float], forms: Sequence[str]) -> str:
    """Write log probabilities of the forms as JSON, where each is one character; empty where none is known.

    >>> first_token({"1": -0.5, " 1": -3.0, "The": -2.0}, ("0", "1"))
    '{"1": -0.42111027}'
    """
    if any(len(form) > 1 for form in forms):
        return ""
    found: dict[str, float] = {}
    for token, logprob in top.items():
        if token.strip() in forms:
            found[token.strip()] = float(np.logaddexp(found.get(token.strip(), -math.inf), logprob))
    return json.dumps({form: round(found[form], 8) for form in forms if form in found}) if found else ""


def expected_grade(logprobs: str) -> float:
    """Give the mean grade under the probabilities of a model's first token; NaN where they are not known.

    They are scaled to 1 over the grades. It is also NaN where grades have less than half of the probability: such a
    model was about to say something else.

    >>> round(expected_grade('{"0": -1.3863, "2": -0.2877}'), 3), expected_grade(""), expected_grade('{"1": -3.0}')
    (1.5, nan, nan)
    """
    try:
        known: dict[str, float] = json.loads(logprobs) if logprobs else {}
        weights = {float(grade): math.exp(logprob) for grade, logprob in known.items()}
    except (AttributeError, TypeError, ValueError, OverflowError, RecursionError):
        return math.nan  # labels of another program, which are no probabilities of grades
    total = sum(weights.values())
    return sum(grade * weight for grade, weight in weights.items()) / total if total >= _LEAST else math.nan


def expected_grades(labels: Labels) -> Floats:
    """Give the expected grade of each row of ``labels.table``, NaN where no probabilities are known: (labels,)."""
    return np.array([expected_grade(text) for text in labels.table["logprobs"].to_pylist()], np.float64)
