"""The slices that a configuration names: the attributes of the topics, and which slices a gate refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.comparison.slicing.derived import OUTCOME, known_topics
from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.attributes import Attributes
from judged.data.expression import Expression
from judged.data.toml_places import SettingError
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.comparison.slicing.topic_slices import Slice, Slicing
    from judged.data.qrels import Qrels
    from judged.diagnosis.gates.config import GateConfig


def sliced(config: GateConfig, attributes: Any = None, qrels: Qrels | None = None) -> Slicing | None:
    """Cut the topics into the slices of the configuration; None where it has none."""
    # `qrels`: the topics, and what can be derived from their judgments. None: all must be in the attributes.
    files = {name: _file(config, name) for name in ("queries", *(["attributes"] if attributes is None else []))}
    if not config.slices:
        return None
    config.places.each("slice", config.slices, refuse_outcome)
    given = files["attributes"] if attributes is None else attributes
    with config.places.part():
        if qrels is not None:
            needed = [name for one in config.slices for name in Expression(one.expression).names]
            known = known_topics(qrels, attributes=given, queries=files["queries"], needed=needed)
        elif given is not None:
            known = Attributes.of(given)
        else:
            fix = 'give attributes = "topics.csv", a table with a column query_id'
            raise InputError("slices are named, and no topic has attributes", fix=fix)
    config.places.each("slice", config.slices, lambda one: Expression(one.expression).mask(known))
    return slice_topics(known, slices=config.slices)


def _file(config: GateConfig, name: str) -> Path | None:
    """Give a file that a configuration names, seen from the folder of the configuration."""
    path = getattr(config, name)
    if path is None:
        return None
    with config.places.part():
        if not (folder(config) / path).is_file():
            fix = "correct the path; it is seen from the folder of the configuration"
            raise SettingError(name, f"{name}: there is no file {folder(config) / path}", fix)
    return folder(config) / path


def over_these(slicing: Slicing, query_ids: tuple[str, ...], config: GateConfig) -> Slicing:
    """Give the slices of these topics."""
    if slicing.slices and not set(slicing.query_ids) & set(query_ids):
        ours, theirs = next(iter(query_ids), "none"), next(iter(slicing.query_ids), "none")
        raise InputError(
            f"no topic has attributes: the first one is {ours!r}, that of the attributes {theirs!r}",
            fix="check that both use the same query ids",
            path=config.path,
        )
    return slicing.over(query_ids)


def refuse_outcome(one: Slice) -> None:
    """Refuse a slice by the outcome of a run."""
    refuse_outcomes(Expression(one.expression).names, f"the slice {one.name!r} is cut by")


def refuse_outcomes(names: Iterable[str], what: str) -> None:
    """Refuse attributes that are what a run achieved."""
    if any(name.strip().casefold() == OUTCOME for name in names):
        raise InputError(
            f"{what} {OUTCOME}, an outcome of a run",
            fix="cut by what is known before any run, such as relevant or words: where a run did best it did so partly"
            " by luck, and any other does worse there (regression to the mean)",
        )


def folder(config: GateConfig) -> Path:
    """Give the folder from which the paths of a configuration are seen."""
    return Path(config.path).parent if config.path else Path()
