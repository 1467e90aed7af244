"""What is known of queries by their texts and traces: what they are about, and whether they were rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.data.attributes import Attributes
from judged.data.topics import Topics
from judged.pipelines.traces import Entities

if TYPE_CHECKING:
    from judged.pipelines.traces import Traces


def query_facts(traces: Traces | None = None, *, entities: Any = None, queries: Any = None) -> Attributes:
    """Tell ``rewritten`` of queries that were traced, and by their texts the ``entity`` of all, to be sliced by.

    Parameters
    ----------
    traces
        What was traced: a query is rewritten if a stage of kind ``rewrite`` made another text of it.
    entities
        What `judged.pipelines.traces.Entities.of` takes; a query is about each that it names, and what that is part of.
    queries
        Texts of topics, as `judged.Topics.of` takes them; where they are left out, those that were traced.

    Examples
    --------
    >>> query_facts(entities=[{"entity": "zip", "parent": "archives"}], queries={"q": "make a zip"}).table.to_pylist()
    [{'query_id': 'q', 'entity': ['zip', 'archives']}]
    """
    texts = (
        {}
        if queries is None
        else dict(zip(*map(Topics.of(queries).table.__getitem__, ("query_id", "text")), strict=True))
    )
    facts: dict[str, dict[str, Any]] = {str(topic): {} for topic in texts}
    given = {str(topic): str(text) for topic, text in texts.items()}
    for topic in traces.query_ids if traces else ():
        spans = traces.spans_of(topic).values() if traces else ()
        asked = next((span.query for span in spans if span.query and span.kind != "rewrite"), "")
        original = given.setdefault(topic, asked)
        made = {span.query for span in spans if span.kind == "rewrite" and span.query}
        facts.setdefault(topic, {})["rewritten"] = bool(made - {original})
    if entities is not None:
        known = Entities.of(entities)
        for topic, text in given.items():
            facts.setdefault(topic, {})["entity"] = list(known.rolled_up(known.mentioned(text).entities)) or None
    return Attributes.of(facts)
