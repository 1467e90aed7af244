"""A database that the tests of a module share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from made_log import shared_database

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def _database() -> Iterator[None]:
    yield from shared_database()
