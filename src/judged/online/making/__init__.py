"""From raw rows to the typed log: pages, events on them, sessions, and a named rule for whatever was wrong."""

from judged.online.making.make import make_log
from judged.online.making.telling import FAMILIES

__all__ = ["FAMILIES", "make_log"]
