"""Measures. One definition of each serves Python, the command line, the web pages, and the documentation.

The classes are imported on first use.
"""

from __future__ import annotations

from judged.components import lazily
from judged.scoring.measures.catalog import MODULES

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.scoring.measures.base": ("AnswerMeasure", "Measure", "Properties", "param"),
        "judged.scoring.measures.parameters": ("Parameter",),
        "judged.scoring.measures.registry": ("measure",),
        "judged.scoring.measures.grammar": ("parse", "parse_many"),
        **{f"judged.scoring.measures.{module}": classes for module, classes in MODULES.items()},
    },
)
