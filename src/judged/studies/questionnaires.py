"""Questionnaires: standard ones with their sources, custom ones, and their scores."""

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
_MAX_SCALE_VALUES = 1_001


@dataclass(frozen=True)
class Item:
    """Question of a questionnaire.

    Parameters
    ----------
    name
        Name in the records.
    text
        Text of the question.
    scale
        Lowest and highest value.
    step
        Distance between values.
    words
        Labels of all values, or of the two ends.
    open
        Whether the answer is a text and not a value.
    reversed
        Whether a low value means a high score.
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
            problem = f"`scale` must be two increasing numbers, got {list(self.scale)}"
            raise SettingError("scale", problem, "write scale = [lowest, highest]")
        if self.step <= 0 or not math.isclose(self.steps, round(self.steps), abs_tol=1e-9):
            problem = f"`step` must be positive and divide the range of the scale, got {self.step:g}"
            raise SettingError("step", problem, "write step = 1, or another divisor of the range")
        if self.steps >= _MAX_SCALE_VALUES:
            problem = f"the scale must have at most {_MAX_SCALE_VALUES:,} values"
            raise SettingError("scale", problem, "write a shorter scale, or a larger step")
        if self.words and len(self.words) not in {2, len(self.values)}:
            problem = f"`words` must label all {len(self.values)} values or the two ends, got {len(self.words)} labels"
            raise SettingError("words", problem, f"write {len(self.values)} labels, or two")

    @property
    def steps(self) -> float:
        """Number of steps from the lowest value to the highest."""
        return (self.scale[1] - self.scale[0]) / self.step

    @property
    def values(self) -> tuple[float, ...]:
        """All values of the scale; empty if the answer is a text."""
        # Multiples of the step, because repeated addition accumulates rounding errors.
        return () if self.open else tuple(self.scale[0] + self.step * i for i in range(round(self.steps) + 1))


@dataclass(frozen=True)
class StandardForm:
    """Questionnaire that many studies use.

    Parameters
    ----------
    title
        Title of the questionnaire.
    items
        Questions; reworded unless the source permits the original wording.
    scores
        Lowest and highest score.
    after
        When it is usually presented.
    higher_is_better
        Whether a higher score is better.
    source
        Publication.
    """

    title: str
    items: tuple[Item, ...]
    scores: tuple[float, float]
    after: After
    source: str
    higher_is_better: bool = True


_AGREE = ("Strongly disagree", "Strongly agree")
# Even statements are negative, so their values are reversed.
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
# Raw TLX: the mean of the ratings, without the weights of pairwise comparisons.
_TLX = (
    ("mental", "How mentally demanding was the task?", _HIGH),
    ("physical", "How physically demanding was the task?", _HIGH),
    ("temporal", "How hurried or rushed was the pace of the task?", _HIGH),
    ("performance", "How successful were you in accomplishing what you were asked to do?", ("Perfect", "Failure")),
    ("effort", "How hard did you have to work to accomplish your level of performance?", _HIGH),
    ("frustration", "How insecure, discouraged, irritated, stressed and annoyed were you?", _HIGH),
)
FORMS: Mapping[str, StandardForm] = {
    "sus": StandardForm(
        "System Usability Scale",
        tuple(Item(f"{i}", text, words=_AGREE, reversed=i % 2 == 0) for i, text in enumerate(_SUS, 1)),
        (0.0, 100.0),
        "system",
        "Brooke, SUS: a quick and dirty usability scale, 1996; the statements may be used if the source is cited",
    ),
    "umux-lite": StandardForm(
        "UMUX-Lite",
        (
            Item("1", "What this system can do is what I need it to do.", (1.0, 7.0), words=_AGREE),
            Item("2", "Using this system is easy.", (1.0, 7.0), words=_AGREE),
        ),
        (0.0, 100.0),
        "system",
        "Lewis, Utesch and Maher, CHI 2013, after Finstad, UMUX, 2010; the questions are reworded",
    ),
    "tlx": StandardForm(
        "NASA Task Load Index, raw",
        tuple(Item(name, text, (0.0, 100.0), 5.0, ends) for name, text, ends in _TLX),
        (0.0, 100.0),
        "task",
        "Hart and Staveland 1988, without weights as in Hart 2006; questions of NASA's paper form",
        higher_is_better=False,
    ),
    "ease": StandardForm(
        "Single Ease Question",
        (Item("1", "How easy or difficult was this task for you?", (1.0, 7.0), words=("Very difficult", "Very easy")),),
        (1.0, 7.0),
        "task",
        "Sauro and Dumas, CHI 2009; the question is reworded",
    ),
    "satisfaction": StandardForm(
        "Satisfaction",
        (Item("1", "How satisfied are you with the results that you got?", words=("Not at all", "Fully")),),
        (1.0, 5.0),
        "task",
        "graded satisfaction, a usual question in studies of search; the wording is not from a publication",
    ),
}
"""Standard questionnaires by name."""
CUSTOM = "custom"


@dataclass(frozen=True)
class Questionnaire:
    """Questionnaire of a study.

    Parameters
    ----------
    of
        One of `FORMS`, or ``custom``.
    name
        Name in the records. Default: `of`.
    after
        When it is presented: after each task, after each system, or at the end.
    wording
        Replacement texts of the items in their order, for example in another language.
    ends
        Replacement labels of the two ends of the scales.
    items
        Questions of a custom questionnaire.
    higher_is_better
        Whether a higher score is better. Default: that of the standard questionnaire, and True for a custom one.

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
        if form is None and self.of != CUSTOM:
            raise SettingError("of", f"unknown questionnaire {self.of!r}", suggest_name(self.of, (*FORMS, CUSTOM)))
        if form is None and not (self.items and self.name and self.after):
            fix = (
                "write `name`, `after` (when the questionnaire is asked), and for each question a table"
                " [[questionnaire.item]] with `name` and `text`"
            )
            raise SettingError("of", "a custom questionnaire must have `name`, `after`, and items", fix)
        if form is not None and self.items:
            raise SettingError(
                "of",
                f"questions cannot be added to the questionnaire {form.title}",
                f'for your own questions, write of = "{CUSTOM}"',
            )
        items = self.items if form is None else form.items
        if self.wording and len(self.wording) != len(items):
            problem = f"`wording` must have one text per item ({len(items)}), got {len(self.wording)}"
            raise SettingError("wording", problem, f"write {len(items)} texts, in the order of the items")
        if self.ends and len(self.ends) != 2:
            raise SettingError("ends", f"`ends` must have two labels, got {len(self.ends)}", "write two labels")
        names = [item.name for item in items]
        if duplicates := [name for name in names if names.count(name) > 1]:
            raise InputError(f"item names must be unique, got {duplicates[0]!r} twice", fix="rename one of the items")
        if form is not None:
            texts = self.wording or tuple(item.text for item in items)
            object.__setattr__(self, "items", tuple(
                Item(item.name, text, item.scale, item.step, self.ends or item.words, reversed=item.reversed)
                for item, text in zip(items, texts, strict=True)
            ))  # fmt: skip
        # The class is frozen, but these defaults depend on other fields.
        object.__setattr__(self, "name", self.name or self.of)
        object.__setattr__(self, "after", self.after or (form and form.after))
        if self.higher_is_better is None:
            object.__setattr__(self, "higher_is_better", form is None or form.higher_is_better)

    @property
    def title(self) -> str:
        """Title of the standard questionnaire, or name of the custom one."""
        return FORMS[self.of].title if self.of in FORMS else self.name

    @property
    def scored(self) -> tuple[Item, ...]:
        """Items that the score is computed from: those with values; empty if their scales differ."""
        items = tuple(item for item in self.items if not item.open)
        return items if len({item.scale for item in items}) == 1 else ()

    @property
    def scores(self) -> tuple[float, float]:
        """Lowest and highest score."""
        if self.of in FORMS:
            return FORMS[self.of].scores
        return (self.scored[0].scale[0], self.scored[0].scale[1]) if self.scored else (math.nan, math.nan)

    def shares(self, values: Floats) -> Floats:
        """Rescale values of the scored items, (..., items), to 0 (worst) to 1."""
        low, high = np.array([item.scale for item in self.scored]).reshape(len(self.scored), 2).T
        shares = (values - low) / (high - low)
        return np.where([item.reversed for item in self.scored], 1.0 - shares, shares)

    def score(self, values: Floats) -> float:
        """Compute the score from the values of the scored items in their order; NaN if a value is NaN."""
        low, high = self.scores
        return low + (high - low) * float(self.shares(values).mean()) if self.scored else math.nan

    def bounds(self, values: Floats) -> tuple[float, float]:
        """Compute the lowest and highest possible scores for any values of the missing (NaN) items."""
        shares, (low, high) = self.shares(values), self.scores
        min_share, max_share = (float(np.where(np.isnan(shares), end, shares).mean()) for end in (0.0, 1.0))
        return low + (high - low) * min_share, low + (high - low) * max_share


def sus_from_umux_lite(score: float) -> float:
    """Predict the SUS score from a UMUX-Lite score, both from 0 to 100 (Lewis, Utesch and Maher 2013).

    >>> [round(sus_from_umux_lite(score), 1) for score in (0, 50, 100)]
    [22.9, 55.4, 87.9]
    """
    return 0.65 * score + 22.9


SCORES = columns("participant", "position", "system", "questionnaire", "score", "low", "high", "items", "sus")
"""Columns of `scores`: ``score`` is empty if an item is missing; ``low`` and ``high`` are its bounds for any answers to
missing items; ``items``: number of answered items; ``sus``: the score on the scale of SUS, for SUS and, by regression,
for UMUX-Lite."""


def scores(records: StudyRecords, design: Design) -> Table:
    """Score all completed questionnaires: a table with the columns of `SCORES`.

    If an item is missing, or its value is not on the scale, the questionnaire has no score: missing values are never
    imputed. Questionnaires that have texts only are omitted.
    """
    questionnaires = {form.name: form for form in design.questionnaires if form.scored}
    rows: list[dict[str, Any]] = []
    for key, answers in _scored_answers(records, questionnaires).items():
        questionnaire, values = questionnaires[key[-1]], np.array(answers)
        low, high = questionnaire.bounds(values)
        answered, score = int((~np.isnan(values)).sum()), questionnaire.score(values)
        sus = {"sus": score, "umux-lite": sus_from_umux_lite(score)}.get(questionnaire.of, math.nan)
        numbers = {"score": score, "low": low, "high": high, "items": answered, "sus": sus}
        row = dict(zip(("participant", "position", "system", "questionnaire"), key, strict=True))
        rows.append(row | {name: None if math.isnan(number) else number for name, number in numbers.items()})
    return pa.Table.from_pylist(rows, schema=SCORES)


def _scored_answers(
    records: StudyRecords, questionnaires: dict[str, Questionnaire]
) -> dict[tuple[str, int, str, str], list[float]]:
    """Return the values of the scored items (NaN: missing) by participant, position, system, and questionnaire."""
    # A questionnaire after a task concerns the system of that task.
    systems = {(row["participant"], row["position"]): row["system"] for row in records["trials"].to_pylist()}
    indices = {name: {item.name: i for i, item in enumerate(form.scored)} for name, form in questionnaires.items()}
    answers: dict[tuple[str, int, str, str], list[float]] = {}
    for row in records["answers"].to_pylist():
        if (name := row["questionnaire"]) in questionnaires:
            trial = row["participant"], row["position"]
            key = (*trial, systems.get(trial, row["system"]), name)
            values = answers.setdefault(key, [math.nan] * len(indices[name]))
            i = indices[name].get(row["item"])
            if i is not None and row["value"] in questionnaires[name].scored[i].values:
                values[i] = row["value"]
    return answers


@dataclass(frozen=True)
class ItemAgreement:
    """Cronbach's alpha of a questionnaire, over the `complete` questionnaires without a missing item."""

    questionnaire: str
    alpha: float
    ci: tuple[float, float]
    complete: int
    incomplete: int


def item_agreement(values: Floats, *, level: float = 0.95) -> tuple[float, tuple[float, float]]:
    """Compute Cronbach's alpha of items (n, k) with the interval of Feldt (1965); NaN if n < 2 or k < 2.

    Alpha equals the generalizability of persons over items (Hoyt 1941); negative values are set to 0.

    >>> values = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    >>> round(item_agreement(values)[0], 4)
    0.9093
    """
    complete = values[~np.isnan(values).any(axis=1)]
    if min(complete.shape) < 2:
        return math.nan, (math.nan, math.nan)
    alpha = reliability(complete, level=level).generalizability
    return alpha.value, alpha.interval or (math.nan, math.nan)


def agreement(records: StudyRecords, design: Design, *, level: float = 0.95) -> tuple[ItemAgreement, ...]:
    """Compute Cronbach's alpha of each questionnaire with several scored items.

    Repeated questionnaires of one person count as independent, which makes the interval too narrow.
    """
    questionnaires = {form.name: form for form in design.questionnaires if len(form.scored) > 1}
    answers = _scored_answers(records, questionnaires)
    agreements: list[ItemAgreement] = []
    for name, questionnaire in questionnaires.items():
        rows = [values for key, values in answers.items() if key[-1] == name]
        shares = questionnaire.shares(np.array(rows).reshape(len(rows), len(questionnaire.scored)))
        complete = int((~np.isnan(shares).any(axis=1)).sum())
        agreements.append(ItemAgreement(name, *item_agreement(shares, level=level), complete, len(shares) - complete))
    return tuple(agreements)
