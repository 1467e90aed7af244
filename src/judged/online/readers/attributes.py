"""Query attributes that a mapping does not name: which become columns, and under which names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from judged.online.engine import identifier, literal
from judged.online.log import ATTRIBUTE_LIMIT, EVENT, RAW_EVENT, RAW_QUERY, SERP, SESSION, SHOWN
from judged.online.readers.mapping_file import MappingFile, MappingSection
from judged.online.readers.paths import Location, leading_names, normalize_name
from judged.online.readers.raw import ReadFinding, run_sql
from judged.online.readers.sections import SelectBuilder
from judged.online.readers.values import text_sql

if TYPE_CHECKING:
    from judged.online.engine import Database

_RESERVED = frozenset(column.name for table in (RAW_QUERY, RAW_EVENT, SERP, SHOWN, EVENT, SESSION) for column in table)
_MAX_NAME_LENGTH = 64
# DuckDB and Python parse nested JSON recursively. Thousands of nested brackets would overflow the stack.
_MAX_BRACKETS = 500
_MAX_STRUCTURES = 10_000  # distinct structures of the attributes that are read, most frequent first


@dataclass(frozen=True)
class Attribute:
    """An attribute: its name in the log, and its column."""

    name: str
    column: str

    def sql(self, available: AttributeColumns) -> str:
        """Return SQL of the value; NULL if it is an object or list."""
        if self.name in available.columns:
            return f"q.{available.columns[self.name]}"
        if available.json_column:
            # from_json gives objects and lists as text. They are no values of an attribute.
            value = f"q._own.{identifier(self.name)}"
            return f"CASE WHEN left({value}, 1) IN ('{{', '[') AND json_valid({value}) THEN NULL ELSE {value} END"
        return "CAST(NULL AS VARCHAR)"


@dataclass(frozen=True)
class AttributeColumns:
    """Columns of attributes by name, and the column with a JSON object of further attributes."""

    columns: Mapping[str, str]
    json_column: str = ""

    def source(self, table: str, attributes: Sequence[Attribute]) -> str:
        """Return SQL of the table with the attributes of the JSON object extracted."""
        if not self.json_column or not attributes:
            return table
        schema = literal(json.dumps({attribute.name: "VARCHAR" for attribute in attributes}))
        return f"(SELECT *, from_json({self.json_column}, {schema}) AS _own FROM {table})"


def unmapped_attributes(
    select: SelectBuilder, section: MappingSection, columns: Mapping[str, Location], is_json: bool, only_queries: bool
) -> AttributeColumns:
    """Select the members of the section's attribute object that the mapping does not name.

    Parameters
    ----------
    is_json
        Whether the rows are JSON. If not, members may also be columns of the table.
    only_queries
        Whether all rows of the table are queries. If there is no attribute object, its other columns are attributes.
    """
    if not section.attribute_object:
        return AttributeColumns({})
    mapped = _mapped_members(select.mapping, section.attribute_object)
    members: list[tuple[str, Location]] = []
    json_sql = ""
    objects = select.locations(section.attribute_object)
    for location in objects:
        text = text_sql(location)
        if isinstance(location.shape, dict):
            for name, shape in location.shape.items():
                if name not in mapped:
                    members.append((name, Location(f"{location.sql}.{identifier(name)}", shape)))
        elif isinstance(location.shape, tuple) and location.shape[0] == "map":
            json_sql = f"CAST(to_json({location.sql}) AS VARCHAR)"
        elif text:
            json_sql = f"CASE WHEN prefix(ltrim({text}), '{{') AND json_valid({text}) THEN {text} END"
    if not is_json:
        members += _flat_columns(select.mapping, section, columns, all_columns=only_queries and not objects)
    scalars = [(name, location) for name, location in members if not isinstance(location.shape, (dict, tuple))]
    # If a name has several locations, the first applies.
    first_locations = dict(reversed(scalars))
    attribute_columns = {name: select.column_for(first_locations[name].sql) for name, _ in scalars}
    return AttributeColumns(attribute_columns, json_sql and select.column_for(json_sql))


def _mapped_members(mapping: MappingFile, attribute_object: str) -> set[str]:
    paths = (leading_names(path) for path in mapping.all_paths)
    return {names[1] for names in paths if names[0] == attribute_object and len(names) > 1}


def _flat_columns(
    mapping: MappingFile, section: MappingSection, columns: Mapping[str, Location], *, all_columns: bool
) -> Iterable[tuple[str, Location]]:
    """Yield columns such as ``query_attributes.x``, and with `all_columns` those that the mapping does not use."""
    prefix = section.attribute_object
    paths = [leading_names(path) for path in mapping.all_paths]
    # A flat table can name the member `shop` of `query_attributes` also query_attributes.shop or
    # query_attributes_shop.
    mapped = _mapped_members(mapping, prefix) | {names[0] for names in paths} | set(section.ignored)
    mapped |= {"_".join(names[1:]) for names in paths if names[0] == prefix}
    mapped |= {source.column for other in mapping.sections for source in other.columns.values()}
    mapped |= {mapping.rank_base_source.column} if mapping.rank_base_source else set()
    normalized = set(map(normalize_name, mapped))
    for name, location in columns.items():
        member = name[len(prefix) + 1 :] if name.lower().startswith((prefix + ".", prefix + "_")) else ""
        if member and normalize_name(member) not in normalized:
            yield member, location
        elif not member and all_columns and not name.startswith("#") and normalize_name(name) not in normalized:
            yield name, location


def select_attributes(
    tables: Sequence[tuple[str, AttributeColumns]], mapping: MappingFile, engine: Database
) -> tuple[tuple[Attribute, ...], tuple[ReadFinding, ...]]:
    """Select the attributes that become columns: those with scalar values, most frequent first.

    Returns
    -------
    attributes, findings
        At most ATTRIBUTE_LIMIT attributes, and a finding if some were left out.
    """
    objects = {section.attribute_object for section in mapping.sections} - {""}
    mapped = {name for attribute_object in objects for name in _mapped_members(mapping, attribute_object)}
    counts: Counter[str] = Counter()
    for table, available in tables:
        counts.update(dict.fromkeys(available.columns, 1))
        if available.json_column:
            counts.update(_count_scalars(table, available.json_column, mapped, engine))
    attributes: list[Attribute] = []
    omitted: list[str] = []
    # SQL compares names without case, so "Market" and "market" cannot both be columns.
    mapped_columns = {name for section in mapping.sections for name in section.attributes}
    used_columns = {name.lower() for name in _RESERVED | mapped_columns}
    used_names: set[str] = set()
    for name, _ in sorted(counts.items(), key=lambda name_count: (-name_count[1], name_count[0])):
        column = name if name.lower() not in used_columns else f"attribute_{name}"
        is_duplicate = name.lower() in used_names or column.lower() in used_columns
        if len(attributes) >= ATTRIBUTE_LIMIT or not _is_usable(name) or is_duplicate:
            omitted.append(name)
            continue
        used_columns.add(column.lower())
        used_names.add(name.lower())
        attributes.append(Attribute(name, column))
    return tuple(attributes), _omission_findings(omitted, counts)


def _is_usable(name: str) -> bool:
    return bool(name.strip()) and len(name) <= _MAX_NAME_LENGTH and name.isprintable()


def _count_scalars(table: str, column: str, mapped: set[str], engine: Database) -> Counter[str]:
    """Count the rows in which each member of a JSON object has a scalar value."""
    # Rows are grouped by structure, because a log has few structures and many rows.
    is_shallow = f"strlen({column}) - strlen(translate({column}, '{{[', '')) <= {_MAX_BRACKETS}"
    structures = run_sql(
        engine,
        f"SELECT json_structure({column})::VARCHAR AS shape, count(*) AS n FROM {table} "
        f"WHERE {is_shallow} GROUP BY shape ORDER BY n DESC, shape LIMIT {_MAX_STRUCTURES}",
    )
    counts: Counter[str] = Counter()
    for text, row_count in structures:
        structure: Any = json.loads(text) if text else None
        for name, kind in cast("dict[str, Any]", structure).items() if isinstance(structure, dict) else ():
            if isinstance(kind, str) and kind != "NULL" and name not in mapped:
                counts[name] += row_count
    return counts


def _omission_findings(names: Sequence[str], counts: Counter[str]) -> tuple[ReadFinding, ...]:
    if not names:
        return ()
    examples = ", ".join(repr(name)[:40] for name in names[:5])
    more, rows = f"{len(names)} query attributes do not become columns: {examples}", sum(counts[name] for name in names)
    return (ReadFinding.from_rule("mapping", "attributes-left-out", "query", rows=rows, more=more),)
