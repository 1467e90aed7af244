"""Recognize interaction logs for `judged check FILE`."""

from __future__ import annotations

from judged.data.identify import FileContent
from judged.errors import InputError
from judged.online.readers.draft import draft_log
from judged.online.readers.files import UnknownLayoutError, detect_file_layout, find_log_files


def recognize(path: str) -> FileContent | None:
    """Return the content of a file that is a log of a known layout, or has columns of queries, times, and clicks."""
    (log_file,) = find_log_files([path])
    try:
        layout = detect_file_layout(log_file)
    except UnknownLayoutError:
        try:
            draft = draft_log(log_file, {})
        except InputError:
            return None
        has_clicks = bool({"click", "clicks", "action"} & set(draft.roles))
        if not draft.is_complete or not {"time", "query"} <= set(draft.roles) or not has_clicks:
            return None
        layout = "columns that are recognized"
    commands = (f"judged logs check {path}", f"judged online metrics {path}", f"judged online overview {path}")
    return FileContent(path, "log", {}, commands, (f"layout: {layout}",))
