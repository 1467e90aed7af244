"""The measures: one definition each, which serves Python, command line, pages and documentation.

The classes stand in their own modules and are imported at their first use.
"""

from __future__ import annotations

from judged._catalogue import MODULES
from judged._lazily import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.measures.base": (
            "AnswerMeasure",
            "Measure",
            "Properties",
            "param",
        ),
        "judged.measures.parameters": ("Parameter",),
        "judged.measures.registry": ("measure",),
        "judged.measures.grammar": (
            "parse",
            "parse_many",
        ),
        **{f"judged.measures.{module}": classes for module, classes in MODULES.items()},
    },
)
