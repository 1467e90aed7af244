"""Test data of the C/W/L user models, ERR, TBG, and U-measure.

The values of a user model are for EU with unit costs: the gain for each examined document. Separate tests of the other
expectations and of costs are in tests/scoring/measures/test_user_models.py.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_MODELS = (
    *("INST", "INSQ", "BPM", "BPMD", "SDCG", "NERR8", "NERR9", "NERR10", "NERR11"),
    *("TrAP", "IFT1", "IFT2", "IFT12", "CwlTBG", "CwlU"),
)
_SCALED = (*_MODELS, "ERR")
_number = st.floats(0, 1e6) | st.integers(0, 10**6)
_above = st.floats(1e-3, 1e6) | st.integers(1, 10**6)


def _for(names: tuple[str, ...], parameter: str, value: Any) -> dict[str, Any]:
    return {f"{name}.{parameter}": value for name in names}


def _only(parameter: str, value: Any, *names: str) -> dict[str, Any]:
    return _for(names, parameter, value)


NEEDED: dict[str, Any] = {
    **_for(_SCALED, "max", 4),
    **_only("T", 2, "IFT1", "IFT12"),
    **_only("A", 0.2, "IFT2", "IFT12"),
    **_only("L", 700, "UMeasure"),
}

VARIED: dict[str, list[Any]] = {
    **_for(_SCALED, "max", [5, 4.5]),
    **_for(_MODELS, "min", [1, 0.5]),
    **_for(_MODELS, "depth", [1, 3]),
    **_for(_MODELS, "of", ["ETU", "ED", "ETC"]),
    **_for(_MODELS, "costs", ["column"]),
    **_for(_MODELS, "residual", [True]),
    **_only("T", [2.5, 0.5], "INST", "INSQ", "BPM", "BPMD", "NERR11"),
    **_only("T", [0.5], "IFT1", "IFT12"),
    **_only("A", [1], "IFT2", "IFT12"),
    **{name: [0, 3] for name in ("b1", "R1", "b2", "R2", "hb", "hc")},
    "medium": [0, 0.25],
    "NERR10.p": [0, 0.5, 1],
    "CwlTBG.halflife": [2, 30.5],
    "CwlU.L": [5, 2.5],
    "UMeasure.L": [132000, 90.5],
    "TBG.halflife": [30, 1800],
    **{name: [0, 0.5, 1] for name in ("click", "click_other", "save")},
    **{name: [0, 2.5] for name in ("summary", "word", "document")},
}

VALUES: dict[str, st.SearchStrategy[Any]] = {
    **_for(_MODELS, "max", _above.filter(lambda value: value >= 1)),
    "ERR.max": st.floats(1e-3, 1000) | st.integers(1, 1000),
    **_for(_MODELS, "min", st.floats(0, 0.99)),
    **_for(_MODELS, "depth", st.integers(1, 10**6)),
    **_for(_MODELS, "of", st.sampled_from(["EU", "ETU", "EC", "ETC", "ED"])),
    **_for(_MODELS, "costs", st.sampled_from(["unit", "column"])),
    **_for(_MODELS, "residual", st.booleans()),
    **_only("T", _number.filter(lambda value: value >= 0.5), "INST"),
    **_only("T", _number, "INSQ", "BPM", "BPMD", "NERR11", "IFT1", "IFT12"),
    **_only("A", _number, "IFT2", "IFT12"),
    **dict.fromkeys(("b1", "R1", "b2", "R2", "hb", "hc"), _number),
    "medium": st.floats(0, 1),
    "NERR10.p": st.floats(0, 1),
    "CwlTBG.halflife": _above,
    "CwlU.L": _above,
    "UMeasure.L": _above,
    "TBG.halflife": _above,
    **{name: st.floats(0, 1) for name in ("click", "click_other", "save")},
    **dict.fromkeys(("summary", "word", "document"), _number),
}

ORACLE: dict[str, Any] = {
    # with two places to read, EU is g1 + C(1) g2, divided by 1 + C(1)
    "INST": ("INST(T=2,max=4,depth=2)", [2, 4], [], (0.5 + (3.5 / 4.5) ** 2) / (1 + (3.5 / 4.5) ** 2), "by hand"),
    "INSQ": ("INSQ(T=2,max=4,depth=2)", [2, 4], [], (0.5 + (4 / 5) ** 2) / (1 + (4 / 5) ** 2), "by hand"),
    "BPM": ("BPM(max=4)@10", [1, None, 3, 4], [], 1 / 3, "by hand: enough at rank 3"),
    "BPMD": ("BPMD(max=4)@10", [1, 3, 4], [], 1 / 2, "by hand: 3/4 is wanted after rank 1, and 1 found at rank 2"),
    "SDCG": ("SDCG(max=4)@1", [3], [], 3 / 4, "by hand"),
    "NERR8": ("NERR8(max=4)@2", [1, 2], [], (1 / 4 + 3 / 4 * 1 / 2) / (1 + 3 / 4), "by hand"),
    "NERR9": ("NERR9(max=4)@2", [1, 2], [], (1 / 4 + 3 / 8 * 1 / 2) / (1 + 3 / 8), "by hand"),
    "NERR10": ("NERR10(p=0.5,max=4,depth=2)", [1, 2], [], (1 / 4 + 3 / 8 * 1 / 2) / (1 + 3 / 8), "by hand"),
    "NERR11": ("NERR11(max=4,depth=2)", [1, 2], [], (1 / 4 + 1 / 3 * 1 / 2) / (1 + 1 / 3), "by hand: C(1) = 4/9 3/4"),
    "TrAP": ("TrAP(max=2)", [2, None, 2], [1], (1 / 1 + 2 / 3) / 3, "by hand: AP"),
    "IFT1": ("IFT1(T=0.5,b1=3,max=4,depth=2)", [2, 4], [], (0.5 + 3 / 4) / (1 + 3 / 4), "by hand: C(1) = 3/4"),
    "IFT2": ("IFT2(A=0.5,b2=3,max=4,depth=2)", [2, 4], [], (0.5 + 1 / 4) / (1 + 1 / 4), "by hand: C(1) = 1/4"),
    "IFT12": (
        "IFT12(T=0.5,b1=3,A=0.5,b2=3,max=4,depth=2)",
        [2, 4],
        [],
        (0.5 + 3 / 16) / (1 + 3 / 16),
        "by hand: C(1) = 3/4 1/4",
    ),
    "CwlTBG": (
        "CwlTBG(halflife=10,max=4,costs=column,depth=3)",
        [4, None, 2],
        [],
        (1 + 0.5 / 8) / (1 + 1 / 2 + 1 / 8),
        "by hand: 10 and 30 are one and three half-lives",
        {"facts": {"cost": [10, 20, 7]}},
    ),
    "CwlU": (
        "CwlU(L=100,max=4,costs=column,depth=4)",
        [4, None, 2],
        [],
        (1 + 0.5 * 0.7) / (1 + 0.9 + 0.7),
        "by hand: the fourth place weighs nothing",
        {"facts": {"cost": [10, 20, 7]}},
    ),
    "ERR": ("ERR(max=3)@3", [3, None, 1, 3], [], 7 / 8 + 1 / 8 * 1 / 8 / 3, "by hand"),
    "TBG": (
        "TBG",
        [1, None, 1],
        [],
        0.64 * 0.77 * (1 + 2 ** (-((4.4 + 0.64 * (0.018 * 300 + 7.8)) + (4.4 + 0.39 * (0.018 * 900 + 7.8))) / 224)),
        "by hand",
        {"facts": {"length": [300, 900, 50]}},
    ),
    "UMeasure": (
        "UMeasure(L=1000)",
        [1, None, 3],
        [],
        1 * 0.9 + 3 * 0.25,
        "by hand: they end at 100 and 750",
        {"facts": {"length": [100, 150, 500]}},
    ),
}
