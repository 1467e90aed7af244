"""Test data of measures of trec_eval that were added later."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

NEEDED: dict[str, Any] = {"recall": 0.5, "factor": 1, "RBP.p": 0.8, "RBPResidual.p": 0.9}

VARIED: dict[str, list[Any]] = {
    "recall": [0, 0.3, 1],
    "rounding": ["up"],
    "points": [(0.25, 0.5, 0.75), (1,)],
    "factor": [0, 0.2, 1.4, 2],
    "RBP.p": [0, 0.5, 0.99],
    "RBP.gain": [],  # graded and tables need max
    "RBP.max": [4, "topic"],
    "RBPResidual.p": [0, 0.5, 0.99],
    "Utility.a": [2],
    "Utility.b": [-0.5],
    "Utility.c": [-1.5],
    "Utility.d": [0.25],
    "Utility.n": [100],
}

WITH: dict[str, dict[str, Any]] = {"RBP.max": {"gain": "graded"}, "Utility.n": {"d": 0.5}}

_numbers = st.floats(-1e6, 1e6) | st.integers(-1000, 1000)
_shares = st.floats(0, 1) | st.sampled_from([0.1, 1 / 3, 5e-324])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "recall": _shares,
    "rounding": st.sampled_from(["nearest", "up"]),
    "points": st.sets(_shares, min_size=1, max_size=5).map(tuple) | st.lists(_shares, min_size=1, unique=True),
    "factor": st.floats(0, 1e6) | st.integers(0, 5),
    "RBP.p": st.floats(0, 1, exclude_max=True),
    "RBP.gain": st.sampled_from(["binary", "graded"]) | st.dictionaries(st.integers(-2, 4), _shares, min_size=1),
    "RBP.max": st.just("topic") | st.floats(1e-300, 1e300) | st.integers(1, 100),
    "RBPResidual.p": st.floats(0, 1, exclude_max=True),
    "Utility.a": _numbers,
    "Utility.b": _numbers,
    "Utility.c": _numbers,
    "Utility.d": _numbers,
    "Utility.n": st.integers(0, 10**12),
}

_E = 0.00001
_LOG3 = math.log2(3)

ORACLE: dict[str, tuple[Any, ...]] = {
    "GMAP": ("GMAP", [1, 0, 1, None, 1], [1], (1 / 1 + 2 / 3 + 3 / 5) / 4, "by hand: one topic's is its AP"),
    "SetAP": ("SetAP", [1, None, 0, 1], [1], 2 * 2 / (4 * 3), "by hand: P 2/4, R 2/3"),
    "GMBpref": ("GMBpref", [0, 1, None, 0, 1], [1, 0], ((1 - 1 / 3) + (1 - 2 / 3)) / 3, "by hand: as Bpref"),
    "IPrec": ("IPrec@0.5", [0, 1, 0, 1, 1], [1], 3 / 5, "by hand: of 2/4 at the second relevant and 3/5 at the third"),
    "AP11": ("AP11(points={0,0.5,1})", [0, 1, 0, 1, 1], [1], (3 / 5 + 3 / 5 + 0) / 3, "by hand"),
    "InfAP": (
        "InfAP",
        [0, -1, None, 1],
        [1],
        (1 / 4 + 3 / 4 * (2 / 3) * (_E / (1 + 2 * _E))) / 2,
        "by hand: k = 4, n = 1, p = 2",
    ),
    "RprecMult": ("RprecMult@0.4", [1, 0, 1, 1], [1], 1 / 2, "by hand: floor(0.4 * 4 + 0.9) = 2 places"),
    "Utility": ("Utility(a=3,b=-2,c=-1,d=0.5,n=20)", [1, 0, None], [1], 3 - 2 * 2 - 1 + 0.5 * 16, "by hand"),
    "BinG": ("BinG", [0, 1, None, 1], [1], (1 / _LOG3 + 1 / 2) / 3, "by hand: 1 and 2 not relevant above"),
    "G": (
        "G",
        [1, 3, None, 1],
        [2],
        (1 / math.log2(2 + 3 - 1) + 3 / math.log2(2 + 5 - 4) + 1 / math.log2(2 + 7 - 5)) / 7,
        "by hand: ideal 3, 2, 1, 1",
    ),
    "nDCGrel": (
        "nDCGrel",
        [1, 2],
        [1],
        (1 / 2 + (1 + 2 / _LOG3) / (2 + 1 / _LOG3) + (1 + 2 / _LOG3) / (2 + 1 / _LOG3 + 1 / 2)) / 3,
        "by hand: two found, one missing",
    ),
    "RnDCG": (
        "RnDCG",
        [1, 2, 0, 0, 1],
        [],
        (1 / 2 + (1 + 2 / _LOG3) / (2 + 1 / _LOG3 + 1 / 2) + (1 + 2 / _LOG3 + 1 / math.log2(6)) / (2.5 + 1 / _LOG3))
        / 3,
        "by hand: ideal 2, 1, 1 changes behind 1 and 3, and the end",
    ),
    "IdealDCG": ("IdealDCG@2", [1, None], [3, -1, 2], 3 + 2 / _LOG3, "by hand"),
    "RelP": ("RelP@3", [1, 0, 1, 1], [1], 2 / 3, "by hand: min(3, 4) places; trec_eval 10's relative_P too"),
    "SetRelP": ("SetRelP", [1, None, 0], [1], 1 / 2, "by hand: min(3, 2)"),
    "NumNonrelRet": ("NumNonrelRet(rel=2)", [2, 1, 0, -1, None], [0], 2.0, "by hand: grades 1 and 0"),
    "RBP": ("RBP(p=0.5,gain=graded,max=4)@3", [4, None, 2, 4], [], 0.5 * (1 + 0.5 / 4), "by hand"),
    "RBPResidual": ("RBPResidual(p=0.5)", [1, -1, None, 0], [], 0.5**4 + 0.5 * (0.5 + 0.25), "by hand"),
    "Yaap": ("Yaap", [0, 1], [1, 1], math.log(1.5 / 3.5), "by hand: s = 1/2, R = 3"),
}

SETS = {
    "SetAP": 1 / 6,
    "SetRelP": 1 / 2,
    "Utility": 1 - 2,
    "IdealDCG": 1 + 1 / _LOG3,
    "NumNonrelRet": 1,
}
