"""Test data of the first measures of the project."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

NEEDED: dict[str, Any] = {"cutoff": 5, "n": 1000}

VARIED: dict[str, list[Any]] = {
    "cutoff": [1, 2, 3, 10],
    "rel": [0, 2, 1.5],
    "norm": ["cutoff", "returned"],
    "gain": ["exp2", {1: 1, 2: 5, 3: 5.5}, {0: 0.25, 4: 100}],
    "discount": ["ln", "log10", "original"],
    "base": [3, 10],
    "beta": [0, 0.5, 2],
    "judged_only": [True],
    "undefined": [1, -1, "skip"],
    "n": [50],
}


WITH: dict[str, dict[str, Any]] = {"base": {"discount": "original"}}

numbers = st.floats(0, 1e6, allow_nan=False) | st.integers(0, 10**18) | st.sampled_from([0.1, 1e-7, 1e22, 5e-324])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "cutoff": st.integers(1, 10**6),
    "rel": numbers,
    "norm": st.sampled_from(["relevant", "cutoff", "returned"]),
    "gain": st.sampled_from(["linear", "exp2"])
    | st.dictionaries(numbers | st.integers(-3, 0), numbers | st.floats(-5, 0), min_size=1, max_size=4),
    "discount": st.sampled_from(["log2", "ln", "log10", "original"]),
    "base": st.floats(1.001, 100) | st.integers(2, 10),
    "beta": numbers,
    "judged_only": st.booleans(),
    "undefined": st.just("skip") | st.floats(-1e3, 1e3) | st.integers(0, 1),
    "n": st.integers(1, 10**9),
}

ORACLE: dict[str, tuple[str, list[float | None], list[float], float, str]] = {
    # name: (written, grades in rank order, grades of judged documents not returned, value, where it is from)
    "AP": ("AP", [1, 0, 1, None, 1], [1], (1 / 1 + 2 / 3 + 3 / 5) / 4, "by hand; trec_eval 10 prints map 0.5667"),
    "Accuracy": ("Accuracy(n=10)", [1, 0], [1], (1 + (10 - 2 - 2 + 1)) / 10, "by hand: TP 1, FP 1, FN 1, TN 7"),
    "Bpref": ("Bpref", [0, 1, None, 0, 1], [1, 0], ((1 - 1 / 3) + (1 - 2 / 3)) / 3, "by hand: R = 3, N = 3"),
    "CG": ("CG@4", [3, 2, -1, 1, 3], [], 6.0, "by hand: 3 + 2 + 0 + 1"),
    "DCG": ("DCG@3", [3, 2, 1], [], 3 + 2 / math.log2(3) + 1 / 2, "by hand"),
    "F": ("F@4", [1, 0, 1, 0], [1, 1], 2 * 0.5 * 0.5 / (0.5 + 0.5), "by hand: P 2/4, R 2/4"),
    "Judged": ("Judged@4", [1, None, -1], [], 2 / 3, "by hand: two of the three returned"),
    "NumQ": ("NumQ", [1, None], [], 1.0, "one topic"),
    "NumRel": ("NumRel", [2, 0, -1], [1], 2.0, "by hand"),
    "NumRelRet": ("NumRelRet", [2, 0, -1], [1], 1.0, "by hand"),
    "NumRet": ("NumRet", [2, 0, -1, None], [1], 4.0, "by hand"),
    "P": ("P@5", [1, None, 2], [1], 2 / 5, "by hand; trec_eval divides by 5 too"),
    "R": ("R@2", [1, 0, 1], [1, 1], 1 / 4, "by hand"),
    "RR": ("RR", [0, None, 1, 1], [], 1 / 3, "by hand"),
    "Rprec": ("Rprec", [1, 0, 1, 1], [], 2 / 3, "by hand: R = 3, two in the first three"),
    "SetF": ("SetF(beta=2)", [1, 0, 0], [1], 5 * (1 / 3) * 0.5 / (0.5 + 4 / 3), "by hand: P 1/3, R 1/2"),
    "SetP": ("SetP", [1, None, 0, 1], [1], 2 / 4, "by hand"),
    "SetR": ("SetR", [1, None, 0, 1], [1], 2 / 3, "by hand"),
    "Success": ("Success@2", [0, 1], [], 1.0, "by hand"),
    "Unjudged": ("Unjudged@5", [1, None, -1], [], 2 / 5, "by hand; trec_eval 10's unj divides by 5 too"),
    "nDCG": (
        "nDCG@3",
        [0, 2, 1],
        [3],
        (2 / math.log2(3) + 1 / 2) / (3 + 2 / math.log2(3) + 1 / 2),
        "by hand",
    ),
}

SETS = {
    "SetP": 1 / 3,
    "SetR": 1 / 2,
    "SetF": 2 * (1 / 6) / (5 / 6),
    "NumRet": 3,
    "NumRel": 2,
    "NumRelRet": 1,
    "NumQ": 1,
    "Accuracy": (1 + 1000 - 3 - 2 + 1) / 1000,
}
