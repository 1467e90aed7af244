"""Results do not depend on the keys of a log or on the order of its rows."""

from __future__ import annotations

import pytest

import judged.online
from judged.data import Qrels
from judged.online.engine import Database
from judged.online.log import InteractionLog
from judged.online.offline import against_qrels, preference_agreement
from judged.online.offline.page_topics import find_page_topics, list_codes
from online.offline.page_logs import log_of
from online.offline.test_against_qrels import PAGES, QRELS


def other_keys(log: InteractionLog) -> InteractionLog:
    """Return the log with other keys of pages, sessions, and users, in reverse order."""
    tables = []
    for name in ("serp", "shown", "event", "session"):
        table = getattr(log, name)
        keys = ("serp", "session", "user")
        columns = [f'1000 - 7 * "{key}" AS "{key}"' if key in keys else f'"{key}"' for key in table.columns]
        tables.append(table.engine.arrow(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1 DESC"))
    engine = Database()
    return InteractionLog(*map(engine.register, tables), name=log.name)


@pytest.mark.usefixtures("clicked_outcome_from_events")
@pytest.mark.parametrize("function", [against_qrels, preference_agreement])
def test_results_do_not_depend_on_keys(function: object) -> None:
    assert callable(function)
    pages = PAGES * 3
    log = log_of([{**page, "user": i // 2} for i, page in enumerate(pages)])
    options = {"by": "kind", **({"outcomes": "clicked"} if function is against_qrels else {})}
    assert function(log, QRELS, **options).to_dict() == function(other_keys(log), QRELS, **options).to_dict()


def test_pages_of_a_topic_with_the_same_list_share_a_code() -> None:
    lists = (["a", "b"], ["b", "a"], ["a", "b"], ["a"], ["a", "b", "c"], ["a", "b"], ["a", "1:b"])
    pages = [{"topic": "t2" if i == 5 else "t1", "shown": docs, "user": i} for i, docs in enumerate(lists)]
    log, qrels = log_of(pages), Qrels.of({"t1": {"a": 1}, "t2": {"a": 1}})
    page_topics = find_page_topics(log, qrels, None, by=None, unit="user", selection="first")
    codes = list_codes(log, page_topics).tolist()
    assert codes[0] == codes[2]
    assert len(set(codes)) == 6
    assert sorted(set(codes)) == list(range(6))


def test_functions_are_exported_by_the_package() -> None:
    assert judged.online.against_qrels is against_qrels
    assert judged.online.preference_agreement is preference_agreement
    with pytest.raises(AttributeError, match="no attribute 'against_users'"):
        judged.online.against_users  # noqa: B018
