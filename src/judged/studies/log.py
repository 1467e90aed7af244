"""What participants did, as a log of users: the queries and events of UBI, which the online half reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.results.atomic import replaced

if TYPE_CHECKING:
    from judged.studies.records import StudyRecords


def log_lines(records: StudyRecords) -> Iterator[dict[str, Any]]:
    """Give a record for each result page and each action, in the layout of docs/ubi.md.

    A participant is a user and a trial a session. A page says as ``ranker`` which system made it; its topic, variant,
    position and group, and whether the trial was practice, are attributes to choose or slice by. A click has the time
    in the document; the grade of a saved document is a rating.

    >>> from judged.studies import StudyRecords
    >>> trial = {"participant": "p1", "position": 1}
    >>> records = StudyRecords.of({
    ...     "participants": [{"participant": "p1"}], "trials": [{**trial, "query_id": "q", "system": "bm25"}],
    ...     "events": [
    ...         {**trial, "at": 0, "action": "query", "page": 1, "query": "faust", "rank": 1, "shown": ["a", "b"]},
    ...         {**trial, "at": 900, "action": "click", "page": 1, "doc_id": "b", "rank": 2},
    ...         {**trial, "at": 5900, "action": "back", "page": 1, "doc_id": "b", "rank": 2, "value": 5}]})
    >>> page, click = log_lines(records)
    >>> page["query_response_hit_ids"], page["query_attributes"]["ranker"], click["event_attributes"]["dwell_ms"]
    (['a', 'b'], 'bm25', 5000)
    """
    groups = {row["participant"]: row["group"] for row in records["participants"].to_pylist()}
    trials = {(row["participant"], row["position"]): row for row in records["trials"].to_pylist()}
    for (participant, position), rows in records.by_trial("events").items():
        trial, session = trials[participant, position], f"{participant}-{position}"
        who = {"client_id": participant, "session_id": session}
        about = {"topic": trial["query_id"], "position": position, "group": groups[participant]}
        about |= {"variant": trial["variant"], "practice": trial["practice"]}
        sizes: dict[str, int] = {}  # of the first page of each query
        for at, row in enumerate(rows):
            same = {**who, "query_id": f"{session}-{row['page']}", "timestamp": row["at"]}
            if row["action"] == "query":
                size, first = sizes.setdefault(row["query"], len(row["shown"] or ())), row["rank"] or 1
                page = {"rank_base": 1, "first_rank": first, "page": 1 + (first - 1) // max(size, 1)}
                attributes = {"ranker": trial["system"], **page, **about}
                yield {
                    **same, "user_query": row["query"], "query_response_hit_ids": row["shown"] or [],
                    "query_attributes": attributes,
                }  # fmt: skip
            elif row["action"] not in {"back", "end"}:
                place: dict[str, Any] = {"object": {"object_id": row["doc_id"]}, "position": {"ordinal": row["rank"]}}
                if row["action"] == "click" and (seconds := _seconds(rows[at + 1 :], row)) is not None:
                    place["dwell_ms"] = round(1000 * seconds)
                yield {**same, "action_name": row["action"], "event_attributes": place}
                if row["action"] == "save" and row["value"] is not None:
                    yield {**same, "action_name": "rating", "event_attributes": place | {"value": row["value"]}}


def _seconds(later: list[dict[str, Any]], click: dict[str, Any]) -> float | None:
    """Tell how long a document was looked at that a click opened; None where nobody knows."""
    of_it = (row for row in later if row["doc_id"] == click["doc_id"] and row["action"] in {"click", "back"})
    next_ = next(of_it, None)
    return next_["value"] if next_ is not None and next_["action"] == "back" else None


def write_log(records: StudyRecords, path: str | Path) -> None:
    """Write the log as JSON Lines, which ``judged online`` and `judged.online.read_log` read.

    Raises
    ------
    JudgedError
        If it cannot be written.
    """
    with replaced(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in log_lines(records))
