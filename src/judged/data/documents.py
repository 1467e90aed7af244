"""Facts about documents besides their ids: lengths, costs, groups. A few measures need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from judged.data.compute import pc
from judged.data.facts import Facts
from judged.errors import InputError

if TYPE_CHECKING:
    from judged._types import Strings

_SHOWN = 3


class Documents(Facts):
    """Facts about documents, by id. Immutable.

    Parameters
    ----------
    table
        Arrow table with the column ``doc_id`` and one for each fact: ``length``, ``cost``, ``group``, whatever
        a measure asks for.
    where
        The path it came from.

    Raises
    ------
    InputError
        If it has no column ``doc_id``, or a document appears in it twice.

    Examples
    --------
    >>> Documents.of({"d1": {"length": 120, "group": "a"}, "d2": {"length": 80, "group": "b"}})
    Documents(2 documents: length, group)
    """

    id_name: ClassVar[str] = "doc_id"

    def column(self, name: str, docs: Strings) -> Any:
        """Look one fact up for many documents.

        Raises
        ------
        InputError
            If there is no such column, or a document has no value in it.
        """
        if name not in self.names:
            known = ", ".join(self.names) or "nothing"
            raise InputError(f"no column {name!r} (there is {known})", fix=f"add a column {name}", path=self.where)
        found = self.table[name].take(pc.index_in(docs, value_set=self.table["doc_id"].combine_chunks()))
        if found.null_count:
            lacking = docs.filter(pc.is_null(found).combine_chunks())
            some = ", ".join(lacking.slice(0, _SHOWN).to_pylist())
            problem = f"{len(lacking)} returned documents have no {name}: {some}"
            raise InputError(problem, fix="add them to the table of documents", path=self.where)
        return found.combine_chunks()
