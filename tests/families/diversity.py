"""Test data of measures over subtopics."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

_BOTH = (1.0, 1.0)
_LIST: list[Any] = [(1, 0), None, _BOTH, (0, 1)]  # subtopic 1 at ranks 1 and 3, subtopic 2 at ranks 3 and 4
_LOG3, _LOG5 = math.log2(3), math.log2(5)

VARIED: dict[str, list[Any]] = {
    "alpha": [0, 0.3, 1],
    "NRBP.beta": [0, 0.8, 1],
    "nNRBP.beta": [0, 0.8, 1],
}

_share = st.floats(0, 1) | st.sampled_from([0, 1])
VALUES: dict[str, st.SearchStrategy[Any]] = {"alpha": _share, "NRBP.beta": _share, "nNRBP.beta": _share}

# For _LIST the gains are 1, 0, 0.5 + 1, 0.5. A missing document covers both.
_IDEAL = "by hand: the ideal gains 2, 1, 0.25, 0.25"
_DCG = 1 + 1.5 / 2 + 0.5 / _LOG5
_ERR = 1 + 1.5 / 3 + 0.5 / 4
_RBP = 1 + 1.5 / 4 + 0.5 / 8
_ORACLE = {
    "AlphaDCG": ("AlphaDCG@4", _DCG / (2 + 1 / _LOG3 + 0.5 / 2 + 0.25 / _LOG5), "by hand"),
    "AlphanDCG": ("AlphanDCG@4", _DCG / (2 + 1 / _LOG3 + 0.25 / 2 + 0.25 / _LOG5), _IDEAL),
    "ERRIA": ("ERRIA@4", _ERR / (2 + 1 / 2 + 0.5 / 3 + 0.25 / 4), "by hand"),
    "nERRIA": ("nERRIA@4", _ERR / (2 + 1 / 2 + 0.25 / 3 + 0.25 / 4), _IDEAL),
    "NRBP": ("NRBP", _RBP * 0.75 / 2, "by hand"),
    "nNRBP": ("nNRBP", _RBP / (2 + 1 / 2 + 0.25 / 4 + 0.25 / 8), _IDEAL),
    "APIA": ("APIA", ((1 + 2 / 3) / 3 + (1 / 3 + 2 / 4) / 3) / 2, "by hand: three relevant to each"),
    "PIA": ("PIA@3", (2 + 1) / (3 * 2), "by hand"),
    "StRecall": ("StRecall@2", 1 / 2, "by hand"),
}
ORACLE = {name: (written, _LIST, [_BOTH], value, source) for name, (written, value, source) in _ORACLE.items()}
