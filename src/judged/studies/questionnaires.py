"""Questionnaires: those that many studies use, with their source, and own ones; and how an answered one is scored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.toml_files import SettingError, suggest_name
from judged.errors import InputError
from judged.stats.sufficiency import reliability
from judged.studies.columns import columns

if TYPE_CHECKING:
    from judged.results.types import Floats, Table
    from judged.studies.design import Design
    from judged.studies.records import StudyRecords


After: TypeAlias = Literal["task", "system", "end"]
_MOST_VALUES = 1_001  # of a scale


@dataclass(frozen=True)
class Item:
    """One question.

    Parameters
    ----------
    name
        How records call it.
    text
        What is asked.
    scale
        Its lowest and highest value.
    step
        How far values are apart.
    words
        What its values are called: all of them, or the two ends.
    open
        Whether it is answered in one's own words, in place of a value.
    reversed
        Whether its lowest value counts as the highest.
    """

    name: str
    text: str
    scale: tuple[float, ...] = (1.0, 5.0)
    step: float = 1.0
    words: tuple[str, ...] = ()
    open: bool = False
    reversed: bool = False

    def __post_init__(self) -> None:
        if len(self.scale) != 2 or not self.scale[0] < self.scale[1]:
            raise SettingError("scale", f"the scale is {list(self.scale)}", "write scale = [lowest, highest]")
        if self.step <= 0 or not math.isclose(self.steps, round(self.steps), abs_tol=1e-9):
            raise SettingError("step", f"steps of {self.step:g} do not lead from end to end", "give one that does")
        if self.steps >= _MOST_VALUES:
            problem = f"the scale has more than {_MOST_VALUES:,} values"
            raise SettingError("scale", problem, "write a shorter scale, or a larger step")
        if self.words and len(self.words) not in {2, len(self.values)}:
            fix = f"give {len(self.values)}, or two for the ends"
            raise SettingError("words", f"there are {len(self.words)} words for {len(self.values)} values", fix)

    @property
    def steps(self) -> float:
        """How many steps lead from the lowest value to the highest."""
        return (self.scale[1] - self.scale[0]) / self.step

    @property
    def values(self) -> tuple[float, ...]:
        """The values that it takes; none where it is answered in one's own words."""
        return () if self.open else tuple(self.scale[0] + self.step * at for at in range(round(self.steps) + 1))


@dataclass(frozen=True)
class Form:
    """A questionnaire that many studies use.

    Parameters
    ----------
    title
        What it is called.
    items
        Its questions; wording of our own, unless the source lets the original be used.
    scores
        Its lowest and highest score.
    after
        When it is usually asked.
    higher_is_better
        Whether a higher score is a better one.
    source
        Where it was published.
    """

    title: str
    items: tuple[Item, ...]
    scores: tuple[float, float]
    after: After
    source: str
    higher_is_better: bool = True


_AGREE = ("Strongly disagree", "Strongly agree")
_SUS = (
    "I think that I would like to use this system frequently.",
    "I found the system unnecessarily complex.",
    "I thought the system was easy to use.",
    "I think that I would need the support of a technical person to be able to use this system.",
    "I found the various functions in this system were well integrated.",
    "I thought there was too much inconsistency in this system.",
    "I would imagine that most people would learn to use this system very quickly.",
    "I found the system very cumbersome to use.",
    "I felt very confident using the system.",
    "I needed to learn a lot of things before I could get going with this system.",
)
_HIGH = ("Very low", "Very high")
_TLX = (
    ("mental", "How mentally demanding was the task?", _HIGH),
    ("physical", "How physically demanding was the task?", _HIGH),
    ("temporal", "How hurried or rushed was the pace of the task?", _HIGH),
    ("performance", "How successful were you in accomplishing what you were asked to do?", ("Perfect", "Failure")),
    ("effort", "How hard did you have to work to accomplish your level of performance?", _HIGH),
    ("frustration", "How insecure, discouraged, irritated, stressed and annoyed were you?", _HIGH),
)
FORMS: Mapping[str, Form] = {
    "sus": Form(
        "System Usability Scale",
        tuple(Item(f"{at}", text, words=_AGREE, reversed=at % 2 == 0) for at, text in enumerate(_SUS, 1)),
        (0.0, 100.0),
        "system",
        "Brooke, SUS: a quick and dirty usability scale, 1996; its statements may be used if the source is named",
    ),
    "umux-lite": Form(
        "UMUX-Lite",
        (
            Item("1", "What this system can do is what I need it to do.", (1.0, 7.0), words=_AGREE),
            Item("2", "Using this system is easy.", (1.0, 7.0), words=_AGREE),
        ),
        (0.0, 100.0),
        "system",
        "Lewis, Utesch and Maher, CHI 2013, after Finstad, UMUX, 2010; wording of our own",
    ),
    "tlx": Form(
        "NASA Task Load Index, raw",
        tuple(Item(name, text, (0.0, 100.0), 5.0, ends) for name, text, ends in _TLX),
        (0.0, 100.0),
        "task",
        "Hart and Staveland 1988, without weights as in Hart 2006; the questions of NASA's paper form",
        higher_is_better=False,
    ),
    "ease": Form(
        "Single Ease Question",
        (Item("1", "How easy or difficult was this task for you?", (1.0, 7.0), words=("Very difficult", "Very easy")),),
        (1.0, 7.0),
        "task",
        "Sauro and Dumas, CHI 2009; wording of our own",
    ),
    "satisfaction": Form(
        "Satisfaction",
        (Item("1", "How satisfied are you with the results that you got?", words=("Not at all", "Fully")),),
        (1.0, 5.0),
        "task",
        "graded satisfaction as studies of search ask for it; wording of our own",
    ),
}
"""The questionnaires by name."""
OWN = "own"


@dataclass(frozen=True)
class Questionnaire:
    """A questionnaire of a study.

    Parameters
    ----------
    of
        One of `FORMS`, or ``own``.
    name
        How records call it; by default as `of`.
    after
        When it is asked: after each task, each system, or at the end.
    wording
        Texts for the items in another language, or of another subject, in their order.
    ends
        And the words for the two ends of their scales.
    items
        Its questions.
    higher_is_better
        Whether a higher score is a better one; None: as the form says, and yes for an own one.

    Examples
    --------
    >>> sus = Questionnaire("sus")
    >>> sus.after, len(sus.items), sus.score(np.array([4.0, 2, 4, 1, 4, 2, 5, 1, 4, 2]))
    ('system', 10, 82.5)
    """

    of: str
    name: str = ""
    after: After | None = None
    wording: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    higher_is_better: bool | None = None

    def __post_init__(self) -> None:
        form = FORMS.get(self.of)
        if form is None and self.of != OWN:
            raise SettingError("of", f"no questionnaire {self.of!r}", suggest_name(self.of, (*FORMS, OWN)))
        if form is None and not (self.items and self.name and self.after):
            fix = "give it name, after, and [[questionnaire.item]] with name and text"
            raise SettingError("of", "an own questionnaire needs a name, when it is asked, and items", fix)
        if form is not None and self.items:
            raise SettingError("of", f"{form.title} has its own items", f'write of = "{OWN}"')
        items = self.items if form is None else form.items
        if self.wording and len(self.wording) != len(items):
            fix = f"give {len(items)}, in their order"
            raise SettingError("wording", f"there are {len(self.wording)} texts for {len(items)} items", fix)
        if self.ends and len(self.ends) != 2:
            raise SettingError("ends", f"there are {len(self.ends)} words for two ends", "give two")
        if len({item.name for item in items}) < len(items):
            raise InputError("two items have one name", fix="give each its own")
        if form is not None:
            texts = self.wording or tuple(item.text for item in items)
            object.__setattr__(self, "items", tuple(
                Item(item.name, text, item.scale, item.step, self.ends or item.words, reversed=item.reversed)
                for item, text in zip(items, texts, strict=True)
            ))  # fmt: skip
        object.__setattr__(self, "name", self.name or self.of)
        object.__setattr__(self, "after", self.after or (form and form.after))
        if self.higher_is_better is None:
            object.__setattr__(self, "higher_is_better", form is None or form.higher_is_better)

    @property
    def title(self) -> str:
        """What it is called."""
        return FORMS[self.of].title if self.of in FORMS else self.name

    @property
    def scored(self) -> tuple[Item, ...]:
        """The items that its score is made of: those with values, if they have one scale; none otherwise."""
        asked = tuple(item for item in self.items if not item.open)
        return asked if len({item.scale for item in asked}) == 1 else ()

    @property
    def scores(self) -> tuple[float, float]:
        """Its lowest and highest score."""
        if self.of in FORMS:
            return FORMS[self.of].scores
        return (self.scored[0].scale[0], self.scored[0].scale[1]) if self.scored else (math.nan, math.nan)

    def shares(self, values: Floats) -> Floats:
        """Say how high each scored item was answered, from 0 to 1; (..., items) as the values."""
        low, high = np.array([item.scale for item in self.scored]).reshape(len(self.scored), 2).T
        shares = (values - low) / (high - low)
        return np.where([item.reversed for item in self.scored], 1.0 - shares, shares)

    def score(self, values: Floats) -> float:
        """Score one that was filled in, by its scored items in their order; NaN where one is missing."""
        low, high = self.scores
        return low + (high - low) * float(self.shares(values).mean()) if self.scored else math.nan

    def bounds(self, values: Floats) -> tuple[float, float]:
        """Say between which scores it would be, whatever was answered where a value is missing (NaN)."""
        shares, (low, high) = self.shares(values), self.scores
        least, most = (float(np.where(np.isnan(shares), end, shares).mean()) for end in (0.0, 1.0))
        return low + (high - low) * least, low + (high - low) * most


def sus_of_umux_lite(score: float) -> float:
    """Give the SUS score that is expected of a UMUX-Lite score, both from 0 to 100 (Lewis, Utesch and Maher 2013).

    >>> [round(sus_of_umux_lite(score), 1) for score in (0, 50, 100)]
    [22.9, 55.4, 87.9]
    """
    return 0.65 * score + 22.9


SCORES = columns("participant", "position", "system", "questionnaire", "score", "low", "high", "items", "sus")
"""Columns of `scores`: ``score`` is empty where an item is missing; ``low`` and ``high`` are what it would be at least
and at most, whatever was answered there; ``items`` were answered; ``sus``: the score as one of SUS, of SUS and, by
regression, of UMUX-Lite."""


def scores(records: StudyRecords, design: Design) -> Table:
    """Score every questionnaire that was filled in, as a table with the columns of `SCORES`.

    A questionnaire with an item that is missing, or is no value of its scale, has no score: never one that takes it as
    0, or as the mean of the others. Those without a score by their nature (open texts) are left out.
    """
    known = {questionnaire.name: questionnaire for questionnaire in design.questionnaires if questionnaire.scored}
    rows: list[dict[str, Any]] = []
    for key, values in _filled_in(records, known).items():
        questionnaire, given = known[key[-1]], np.array(values)
        low, high = questionnaire.bounds(given)
        answered, score = int((~np.isnan(given)).sum()), questionnaire.score(given)
        sus = {"sus": score, "umux-lite": sus_of_umux_lite(score)}.get(questionnaire.of, math.nan)
        numbers = {"score": score, "low": low, "high": high, "items": answered, "sus": sus}
        named = dict(zip(("participant", "position", "system", "questionnaire"), key, strict=True))
        rows.append(named | {name: None if math.isnan(number) else number for name, number in numbers.items()})
    return pa.Table.from_pylist(rows, schema=SCORES)


def _filled_in(records: StudyRecords, known: dict[str, Questionnaire]) -> dict[tuple[str, int, str, str], list[float]]:
    """Give the values of the scored items of each questionnaire that was filled in; NaN where there is none.

    A questionnaire after a task is of the system that the task was done with.
    """
    of = {(row["participant"], row["position"]): row["system"] for row in records["trials"].to_pylist()}
    places = {name: {item.name: at for at, item in enumerate(one.scored)} for name, one in known.items()}
    found: dict[tuple[str, int, str, str], list[float]] = {}
    for row in records["answers"].to_pylist():
        if (name := row["questionnaire"]) in known:
            trial = row["participant"], row["position"]
            values = found.setdefault((*trial, of.get(trial, row["system"]), name), [math.nan] * len(places[name]))
            at = places[name].get(row["item"])
            if at is not None and row["value"] in known[name].scored[at].values:
                values[at] = row["value"]
    return found


@dataclass(frozen=True)
class Agreement:
    """How far the items of a questionnaire agree: Cronbach's alpha, of so many that were filled in whole."""

    questionnaire: str
    alpha: float
    ci: tuple[float, float]
    filled_in: int
    left_out: int


def item_agreement(values: Floats, *, level: float = 0.95) -> tuple[float, tuple[float, float]]:
    """Give Cronbach's alpha of items (n, k) with the interval of Feldt (1965); NaN for fewer than two of either.

    Alpha is the generalizability of persons over items (Hoyt 1941); below 0 it is taken as 0.

    >>> values = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    >>> round(item_agreement(values)[0], 4)
    0.9093
    """
    whole = values[~np.isnan(values).any(axis=1)]
    if min(whole.shape) < 2:
        return math.nan, (math.nan, math.nan)
    found = reliability(whole, level=level).generalizability
    return found.value, found.interval or (math.nan, math.nan)


def agreement(records: StudyRecords, design: Design, *, level: float = 0.95) -> tuple[Agreement, ...]:
    """Say how far the items of each questionnaire with several agree.

    What one person filled in several times counts as if it were of several: the interval is then too narrow.
    """
    known = {one.name: one for one in design.questionnaires if len(one.scored) > 1}
    filled_in = _filled_in(records, known)
    found: list[Agreement] = []
    for name, questionnaire in known.items():
        given = [values for key, values in filled_in.items() if key[-1] == name]
        values = questionnaire.shares(np.array(given).reshape(len(given), len(questionnaire.scored)))
        whole = int((~np.isnan(values).any(axis=1)).sum())
        found.append(Agreement(name, *item_agreement(values, level=level), whole, len(values) - whole))
    return tuple(found)
