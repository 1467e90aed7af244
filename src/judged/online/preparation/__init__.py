"""From raw rows to the typed log: pages, events on them, sessions, and a named rule for whatever was wrong."""

from judged.online.preparation.contents import FAMILIES
from judged.online.preparation.make import make_log

__all__ = ["FAMILIES", "make_log"]
