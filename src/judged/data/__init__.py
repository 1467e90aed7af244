"""Qrels, runs and topics, which are read from many formats and stored as Arrow columns."""

from __future__ import annotations

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.data.qrels": ("Qrels",),
        "judged.data.run": ("Run",),
        "judged.data.topics": ("Topics",),
        "judged.data.attributes": ("Attributes",),
        "judged.data.documents": ("Documents",),
        "judged.data.freshness": ("DatedDocuments", "dated_documents"),
        "judged.data.texts": ("Texts",),
        "judged.data.check_files": ("check", "check_one", "check_qrels", "check_run"),
        "judged.data.convert_files": ("convert",),
        "judged.data.findings": ("Finding", "Findings"),
        "judged.data.write": ("write_qrels", "write_run"),
    },
)
