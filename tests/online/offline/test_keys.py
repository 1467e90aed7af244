"""Keys are given when a log is made: which ones, and in which order rows come, changes nothing."""

from __future__ import annotations

import ibis
import pytest

from judged.online.log import InteractionLog
from judged.online.offline import against_qrels, preference_agreement
from online.offline.pages_made import log_of
from online.offline.test_against_qrels import PAGES, QRELS


def other_keys(log: InteractionLog) -> InteractionLog:
    """Give pages, sessions and users other numbers, in the opposite order."""
    tables = []
    for name in ("serp", "shown", "event", "session"):
        table = getattr(log, name)
        keys = {key: 1000 - 7 * table[key] for key in ("serp", "session", "user") if key in table.columns}
        tables.append(table.mutate(**keys).order_by(ibis.desc(table.columns[0])).to_pyarrow())
    made = ibis.duckdb.connect()
    return InteractionLog(*(made.create_table(f"t{at}", one) for at, one in enumerate(tables)), name=log.name)


@pytest.mark.parametrize("function", [against_qrels, preference_agreement])
def test_keys_do_not_matter(function: object) -> None:
    assert callable(function)
    pages = PAGES * 3
    log = log_of([{**page, "user": at // 2} for at, page in enumerate(pages)])
    options = {"resamples": 100, "by": "kind"}
    assert function(log, QRELS, **options).to_dict() == function(other_keys(log), QRELS, **options).to_dict()
