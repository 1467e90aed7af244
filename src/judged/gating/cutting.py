"""The slices that a configuration names: what is known of the topics, and which slices a gate refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.gating.wrong import Wrong
from judged.slicing.derived import OUTCOME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.data import Qrels
    from judged.gating.config import GateConfig
    from judged.slicing.slices import Slice, Slicing

NO_OUTCOME = (
    "cut by what is known before any run, such as relevant or words: where a run did best it did so partly by luck, and"
    " any other does worse there (regression to the mean)"
)


def sliced(config: GateConfig, attributes: Any = None, qrels: Qrels | None = None) -> Slicing | None:
    """Cut the topics into the slices of the configuration; None where it has none."""
    # `qrels`: the topics, and what can be derived from their judgments. None: all must be in the attributes.
    from judged.data.attributes import Attributes
    from judged.slicing.derived import known_topics
    from judged.slicing.expression import Expression
    from judged.slicing.slices import slice_topics

    _refuse_lost_files(config, ("queries",) if attributes is not None else ("attributes", "queries"))
    if not config.slices:
        return None
    for place, one in enumerate(config.slices, 1):
        refuse_outcome(one, Wrong(f"[[slice]] {place}", config.path, config.lines.get(f"slice {place}")))
    given = _path(config, config.attributes) if attributes is None else attributes
    if given is None and qrels is None:
        raise InputError(
            "slices are named, and nothing is known of the topics",
            fix='give attributes = "topics.csv", a table with a column query_id',
            path=config.path,
        )
    try:
        if qrels is None:
            known = Attributes.of(given)
        else:
            needed = [name for one in config.slices for name in Expression(one.expression).names]
            known = known_topics(qrels, attributes=given, queries=_path(config, config.queries), needed=needed)
        return slice_topics(known, slices=config.slices)
    except InputError as error:
        if error.path:
            raise
        raise InputError(error.problem, fix=error.fix, path=config.path, line=_line_of(error.problem, config)) from None


def _line_of(problem: str, config: GateConfig) -> int | None:
    """Give the line of the slice that an error is about."""
    about = [at for at, one in enumerate(config.slices, 1) if problem.startswith(f"slice {one.name!r}:")]
    return config.lines.get(f"slice {about[0]}") if about else None


def over_these(slicing: Slicing, query_ids: tuple[str, ...], config: GateConfig) -> Slicing:
    """Give the slices of these topics."""
    if slicing.slices and not set(slicing.query_ids) & set(query_ids):
        ours, theirs = next(iter(query_ids), "none"), next(iter(slicing.query_ids), "none")
        raise InputError(
            f"nothing is known of any topic: the first one is {ours!r}, that of the attributes {theirs!r}",
            fix="check that both use the same query ids",
            path=config.path,
        )
    return slicing.over(query_ids)


def refuse_outcome(one: Slice, wrong: Wrong) -> None:
    """Refuse a slice by the outcome of a run."""
    from judged.slicing.expression import Expression

    if is_outcome(Expression(one.expression).names):
        raise wrong(f"the slice {one.name!r} is cut by {OUTCOME}, an outcome of a run", NO_OUTCOME)


def is_outcome(names: Iterable[str]) -> bool:
    """Tell whether one of these attributes is what a run achieved."""
    return any(name.strip().casefold() == OUTCOME for name in names)


def folder(config: GateConfig) -> Path:
    """Give the folder from which the paths of a configuration are seen."""
    return Path(config.path).parent if config.path else Path()


def _path(config: GateConfig, name: str | None) -> Path | None:
    return None if name is None else folder(config) / name


def _refuse_lost_files(config: GateConfig, names: Iterable[str]) -> None:
    for name in names:
        path = _path(config, getattr(config, name))
        if path is not None and not path.is_file():
            raise Wrong(name, config.path, config.lines.get(name))(
                f"there is no file {path}", "correct the path; it is seen from the folder of the configuration"
            )
