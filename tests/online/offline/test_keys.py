"""Keys are given when a log is made: which ones, and in which order rows come, changes nothing."""

from __future__ import annotations

import pytest

import judged.online
from judged.data import Qrels
from judged.online.engine import Engine
from judged.online.log import InteractionLog
from judged.online.offline import against_qrels, preference_agreement
from judged.online.offline.joined import joined_pages, list_codes
from online.offline.pages_made import log_of
from online.offline.test_against_qrels import PAGES, QRELS


def other_keys(log: InteractionLog) -> InteractionLog:
    """Give pages, sessions and users other numbers, in the opposite order."""
    tables = []
    for name in ("serp", "shown", "event", "session"):
        table = getattr(log, name)
        keys = ("serp", "session", "user")
        columns = [f'1000 - 7 * "{key}" AS "{key}"' if key in keys else f'"{key}"' for key in table.columns]
        tables.append(table.engine.arrow(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1 DESC"))
    made = Engine()
    return InteractionLog(*map(made.register, tables), name=log.name)


@pytest.mark.usefixtures("clicked_alone")
@pytest.mark.parametrize("function", [against_qrels, preference_agreement])
def test_keys_do_not_matter(function: object) -> None:
    assert callable(function)
    pages = PAGES * 3
    log = log_of([{**page, "user": at // 2} for at, page in enumerate(pages)])
    options = {"by": "kind", **({"outcomes": "clicked"} if function is against_qrels else {})}
    assert function(log, QRELS, **options).to_dict() == function(other_keys(log), QRELS, **options).to_dict()


def test_pages_of_one_topic_that_show_the_same_in_the_same_order_share_a_code() -> None:
    shown = (["a", "b"], ["b", "a"], ["a", "b"], ["a"], ["a", "b", "c"], ["a", "b"], ["a", "1:b"])
    pages = [{"topic": "t2" if at == 5 else "t1", "shown": docs, "user": at} for at, docs in enumerate(shown)]
    log, qrels = log_of(pages), Qrels.of({"t1": {"a": 1}, "t2": {"a": 1}})
    joined = joined_pages(log, qrels, None, by=None, unit="user", which="first")
    codes = list_codes(log, joined).tolist()
    assert codes[0] == codes[2]
    assert len(set(codes)) == 6
    assert sorted(set(codes)) == list(range(6))


def test_they_are_had_from_the_package_too() -> None:
    assert judged.online.against_qrels is against_qrels
    assert judged.online.preference_agreement is preference_agreement
    with pytest.raises(AttributeError, match="no attribute 'against_users'"):
        judged.online.against_users  # noqa: B018
