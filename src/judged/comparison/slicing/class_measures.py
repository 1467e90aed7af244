"""Measures of classes: slices of topics that are each scored by a measure of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from judged.data.files import exists
from judged.data.toml_files import SettingError, SourceLines, build_from_keys, parse_toml, read_toml
from judged.errors import InputError
from judged.scoring.evaluation import DIALECTS
from judged.scoring.evaluation.inputs import index_of_measure, with_rel

if TYPE_CHECKING:
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure

NO_AVERAGE = "There is no average over the classes, because scores by different measures cannot be averaged."
_COMMA = re.compile(r",(?![^()]*\))")  # outside of the parameters of a measure
_ENTRY = re.compile(r"(.+?)=([^=()]+(?:\([^()]*\)[^=()]*)?)")  # the label may contain "="


@dataclass(frozen=True)
class ClassMeasures:
    """Table ``[class]``: the measures of classes, before the classes are known."""

    measures: Mapping[str, str]  # by label: the name of a slice, or the value of its attribute
    by: str = ""  # attribute whose values are the classes; empty if not declared
    # settings of the checks of a gate
    margin: float | None = None
    margin_relative: float | None = None
    min_topics: int | None = None
    strict: bool | None = None


def read_class_measures(source: Any) -> ClassMeasures:
    """Read the measures of classes.

    Parameters
    ----------
    source
        A dict ``{label: measure}``, a text such as ``known-item=P@5,explore=R@100``, or a TOML file with
        ``[class.measures]``.

    Raises
    ------
    InputError
        If the file cannot be read, or no measure is declared.
    """
    if isinstance(source, Mapping):
        return ClassMeasures({str(label): str(measure) for label, measure in cast("Any", source).items()})
    if exists(source) or Path(source).suffix == ".toml":
        text = read_toml(source)
        with SourceLines.of(text, str(source)).locate_errors("class"):
            return parse_class_table(parse_toml(text, str(source)).get("class", {}))
    return ClassMeasures(parse_class_measures(str(source)))


def parse_class_measures(text: str) -> dict[str, str]:
    """Parse ``LABEL=MEASURE,LABEL=MEASURE``.

    >>> parse_class_measures("known-item=P@5,kind=law=nDCG(gain=exp2,rel=2)@10")
    {'known-item': 'P@5', 'kind=law': 'nDCG(gain=exp2,rel=2)@10'}
    """
    entries = [_ENTRY.fullmatch(part.strip()) for part in _COMMA.split(text)]
    if not all(entries):
        fix = "write LABEL=MEASURE,LABEL=MEASURE, such as known-item=P@5,explore=R@100"
        raise InputError(f"the measures of classes cannot be read from {text!r:.80}", fix=fix)
    return {entry[1].strip(): entry[2].strip() for entry in entries if entry}


def parse_class_table(table: Any) -> ClassMeasures:
    """Parse the table ``[class]`` of a TOML file.

    >>> declared = parse_class_table({"by": "kind", "measures": {"law": "P@5"}})
    >>> declared.by, declared.measures
    ('kind', {'law': 'P@5'})
    """
    keys: dict[str, Any] = {**table} if isinstance(table, Mapping) else {}
    measures = keys.pop("measures", None)
    if not isinstance(measures, Mapping) or not measures:
        raise SettingError("measures", "no measures of classes", 'write [class.measures] with lines LABEL = "P@5"')
    return build_from_keys(ClassMeasures, keys, {"measures": measures})


def measures_of_classes(scores: Scores, slicing: Slicing) -> dict[int, Measure]:
    """Return the measure of each slice that has one, by index of the slice; empty if no slice has its own.

    Raises
    ------
    InputError
        If a measure was not evaluated, or with several lowest relevant grades.
    """
    rules = DIALECTS.get(scores.policies.dialect, DIALECTS["judged"])
    measures: dict[int, Measure] = {}
    for i, name in enumerate(slicing.class_measures):
        if name:
            parsed = rules.measures(name, scores.qrels.grades)[0]
            # `evaluate(rel=2)` sets the lowest relevant grade of names without one
            same = [m for m in scores.measures if with_rel(parsed, getattr(m, "rel", None), name) == m]
            if len(same) > 1:
                fix = "write the lowest relevant grade in the name, such as P(rel=1)@5"
                raise InputError(f"{name} is ambiguous: {' and '.join(map(str, same))} were evaluated", fix=fix)
            measures[i] = scores.measures[index_of_measure(same[0] if same else parsed, scores.measures)]
    return measures
