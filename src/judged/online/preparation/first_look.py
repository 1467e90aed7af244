"""A first look at the events, by application and action: what is decided before they are read in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.online.engine import listed
from judged.online.preparation.work import SCRIPTED
from judged.online.tables import ACTIONS, NAMES, action_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

from judged.online.preparation.work import Work

_RARE = 10
"""Positions 0 are how a log counts, and no accident, if they are at least a tenth as frequent as positions 1."""

_NAMED = 8
"""So many unknown actions and applications are named: a log can have a million, where an id got into their place."""

_TALLY = """
CREATE TEMP TABLE $tally AS
SELECT application, action, count(*) AS rows, count(position) AS placed, count(*) FILTER (position = 0) AS zeros,
    count(*) FILTER (position = 1) AS ones, count(dwell_ms) AS dwelling, count(*) FILTER ($scripted) AS programs,
    count(propensity) AS propensities, count(value) AS "values"
FROM $event GROUP BY ALL
"""

_PLAIN = "regexp_replace(lower(action), '[^a-z0-9]', '', 'g')"

_KNOWN = f"""
SELECT action, sum(rows)::BIGINT AS rows, sum(dwelling)::BIGINT AS dwelling FROM $tally
WHERE action IN $given OR {_PLAIN} IN $plain GROUP BY action ORDER BY rows DESC, action
"""

_DIALECT = f"""
CREATE TEMP TABLE $dialect AS
SELECT *, coalesce($base, CASE WHEN zeros = 0 OR zeros * {_RARE} < ones THEN 1 ELSE 0 END) AS base
FROM (SELECT application, sum(placed)::BIGINT AS placed, sum(zeros)::BIGINT AS zeros, sum(ones)::BIGINT AS ones
    FROM $tally GROUP BY application HAVING sum(placed) > 0)
"""


@dataclass(frozen=True)
class Peek:
    """What the first look shows; nothing in it grows with the number of names that a log has.

    Parameters
    ----------
    rows
        Events read.
    bases
        The positions at which applications begin to count, sorted; nothing where no event has a position.
    placed, from_zero
        Events with a position, and those of applications that count from 0.
    counting
        How applications count, those with the most positions; the table ``dialect`` has each of them.
    meanings
        Actions by the log's names, the most frequent first, where they mean something.
    unknown, unknown_names
        Events of other names, and the most frequent of these.
    programs, propensities, values
        How many events come from programs, carry a propensity, carry a value.
    dwell_everywhere
        What the log calls dwell stands on most events that open nothing as well: it is the age of the page or of the
        session then, and no visit.
    dwelling
        Events that carry a dwell.
    """

    rows: int
    bases: tuple[int, ...]
    placed: int
    from_zero: int
    counting: str
    meanings: Mapping[str, str]
    unknown: int
    unknown_names: str
    programs: int
    propensities: int
    values: int
    dwell_everywhere: bool
    dwelling: int

    @property
    def extras(self) -> tuple[str, ...]:
        """Columns that few logs have: a column of nulls costs as much as any other."""
        dwelling = self.dwelling and not self.dwell_everywhere
        having = (("dwell_ms", dwelling), ("value", self.values), ("propensity", self.propensities))
        return tuple(name for name, count in having if count)


_OPENING = frozenset({"click", "heartbeat", "page_exit"})
"""Actions that may rightly carry a dwell."""


def peek(work: Work, actions: Mapping[str, str]) -> Peek:
    """Look at the events once, by application and action."""
    work.run(_TALLY, scripted=SCRIPTED)
    sums = work.one("""
        SELECT sum(rows) AS rows, sum(dwelling) AS dwelling, sum(programs) AS programs,
            sum(propensities) AS propensities, sum("values") AS "values" FROM $tally""")
    rows, dwelling, programs, propensities, values = (int(value or 0) for value in sums.values())
    plain = {name.replace("_", "") for name in (*ACTIONS, *" ".join(NAMES.values()).split())}
    named = work.run(_KNOWN, given=listed(actions), plain=listed(plain))
    known = [(action, count, dwell) for action, count, dwell in named if action and action_of(action, actions)]
    opening = [one for one in known if action_of(one[0], actions) in _OPENING]
    aside = rows - sum(count for _, count, _ in opening)
    aside_dwelling = dwelling - sum(dwell for _, _, dwell in opening)
    return Peek(
        rows=rows,
        **_bases(work),
        meanings={action: meaning for action, _, _ in known if (meaning := action_of(action, actions))},
        **_unknown(work, [action for action, _, _ in known]),
        programs=programs,
        propensities=propensities,
        values=values,
        dwell_everywhere=aside_dwelling > 0 and 2 * aside_dwelling >= aside,
        dwelling=dwelling,
    )


def _unknown(work: Work, known: Iterable[str]) -> dict[str, Any]:
    work.run(
        """CREATE TEMP TABLE $unknown AS SELECT coalesce(nullif(action, ''), '(none)') AS name, sum(rows)::BIGINT AS n
        FROM $tally WHERE NOT coalesce(action IN $known, false) GROUP BY name""",
        known=listed(known),
    )
    rows, names = work.run("SELECT coalesce(sum(n), 0)::BIGINT, count(*) FROM $unknown")[0]
    most = work.run("SELECT name, n FROM $unknown ORDER BY n DESC, name LIMIT $limit", limit=_NAMED)
    said = ", ".join(f"{name} {count:,}" for name, count in most)
    left = names - len(most)
    return {"unknown": rows, "unknown_names": said + (f" and {left:,} more" if left else "")}


def _bases(work: Work) -> dict[str, Any]:
    """Make the table ``dialect``, a row an application with positions, and sum it up."""
    given = work.choices.rank_base if work.choices.rank_base is not None else work.raw.rank_base
    work.run(_DIALECT, base="NULL" if given is None else given)
    sums = work.run("SELECT base, count(*), sum(placed)::BIGINT FROM $dialect GROUP BY base ORDER BY base")
    most = work.run(
        """SELECT application, base, placed, zeros, ones
        FROM (FROM $dialect ORDER BY placed DESC, application NULLS FIRST LIMIT $limit)
        ORDER BY application NULLS FIRST""",
        limit=_NAMED,
    )
    left = sum(count for _, count, _ in sums) - len(most)
    said = [_counting(*one, given=given is not None) for one in most]
    return {
        "bases": tuple(base for base, _, _ in sums),
        "placed": sum(placed for _, _, placed in sums),
        "from_zero": sum(placed for base, _, placed in sums if base == 0),
        "counting": "; ".join([*said, *([f"{left:,} more"] if left else [])]),
    }


def _counting(application: str | None, base: int, placed: int, zeros: int, ones: int, *, given: bool) -> str:
    """Say how an application counts, and how sure that is."""
    sure = given or (zeros + ones >= _RARE and not (base and zeros))
    name = application or "events without an application"
    return f"{name} from {base} ({zeros:,} of {placed:,} positions are 0, {ones:,} are 1{'' if sure else ', not sure'})"
