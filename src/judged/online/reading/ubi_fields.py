"""The places of UBI, and of our dialect of it: which column of ours is written where, as in `docs/ubi.md`."""

from __future__ import annotations

from dataclasses import dataclass

from judged.online.reading.shapes import Path
from judged.online.reading.values import Kind


@dataclass(frozen=True)
class Field:
    """One column of ours.

    Parameters
    ----------
    name
        The column.
    kind
        What a value of it is.
    places
        Where it is looked for in a record, dots between names; the first that holds something counts.
    columns
        Names it may have in a flat table, besides the places themselves.
    """

    name: str
    kind: Kind
    places: tuple[str, ...]
    columns: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The places as paths."""
        return tuple(tuple(place.split(".")) for place in self.places)


_SHARED = (
    Field("query_id", "word", ("query_id",)),
    Field("session_id", "word", ("session_id", "event_attributes.session_id", "query_attributes.session_id")),
    Field("user_id", "word", ("client_id", "user_id", "query_attributes.user_id", "event_attributes.user_id")),
    Field("time_ms", "time", ("timestamp",)),
    Field("application", "word", ("application", "query_attributes.application")),
    Field("query", "text", ("user_query",)),
    Field("bot", "flag", ("query_attributes.bot", "event_attributes.bot")),
    Field(
        "user_agent",
        "word",
        ("query_attributes.user_agent", "event_attributes.user_agent", "event_attributes.browser"),
    ),
)

QUERY_FIELDS = (
    *_SHARED,
    Field("language", "word", ("query_attributes.language",)),
    Field("device", "word", ("query_attributes.device",)),
    Field("filtered", "filled", ("query_attributes.filters", "query_attributes.filtered")),
    Field("page", "page", ("query_attributes.page",)),
    Field("size", "whole", ("query_attributes.page_size", "query_attributes.size", "query.size")),
    Field("first_rank", "page", ("query_attributes.first_rank",)),
    Field("n_total", "whole", ("query_attributes.result_count",)),
    Field(
        "hit_ids",
        "list",
        ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids"),
    ),
    Field("teams", "list", ("query_attributes.interleaving.teams",), ("teams",)),
    Field("propensities", "numbers", ("query_attributes.propensities",)),
    Field("rescued", "flag", ("query_attributes.rescued",)),
    Field("suggested", "flag", ("query_attributes.suggested",)),
    Field("latency_ms", "real", ("query_attributes.latency_ms",)),
    Field("experiment", "word", ("query_attributes.experiment.name", "query_attributes.experiment")),
    Field("variant", "word", ("query_attributes.experiment.variant", "query_attributes.variant")),
    Field("assign_p", "real", ("query_attributes.experiment.probability",)),
    Field("ranker", "word", ("query_attributes.ranker",)),
    Field("trace_id", "word", ("query_attributes.trace_id",)),
)

EVENT_FIELDS = (
    *_SHARED,
    Field("event_id", "word", ("event_id", "event_attributes.event_id")),
    Field("action", "word", ("action_name",)),
    Field("object_id", "word", ("event_attributes.object.object_id",), ("object_id",)),
    Field("position", "whole", ("event_attributes.position.ordinal", "event_attributes.position"), ("ordinal",)),
    Field("dwell_ms", "millis", ("event_attributes.dwell_ms",)),
    Field("value", "real", ("event_attributes.value",)),
    Field("propensity", "real", ("event_attributes.propensity",)),
)

BASES = (Field("base", "whole", ("query_attributes.rank_base", "event_attributes.position.base"), ("rank_base",)),)
"""What rank the first result has."""

COUNTS = Field("found", "whole", ("event_attributes.result_count",), ("result_count",))
"""How many results were found, as the front end's search event says it."""

DWELL_TIME = Field("dwell_time", "seconds", ("event_attributes.dwell_time",))
"""Seconds on the page when something happened: a dwell time only where what happened is that the page was left."""

PAGE_EXITS = ("page_exit", "page_leave", "page_unload", "unload")
"""Actions on which DWELL_TIME is how long the visit was."""

OFFSET = Field("offset", "whole", ("query.from",))
"""Results passed over, as the request to OpenSearch says it: with the size it gives the page."""

ATTRIBUTES = "query_attributes"
KNOWN_ATTRIBUTES = frozenset(
    path[1] for one in (*QUERY_FIELDS, *BASES) for path in one.paths if path[0] == ATTRIBUTES
) | {"interleaving", "experiment"}
"""Query attributes that have columns of ours."""

KNOWN_COLUMNS = frozenset({
    "application", "query_id", "client_id", "user_id", "session_id", "user_query", "query_attributes",
    "object_id_field", "timestamp", "query_response_id", "query", "action_name", "event_attributes", "message",
    "message_type", "rank_base", "query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids",
})  # fmt: skip
"""Columns of a flat table that are no attributes."""

ESSENTIAL = {"query": ("query_id", "user_id", "time_ms", "query"), "event": ("query_id", "user_id", "time_ms")}
"""Columns that nearly every metric needs."""
