"""Test data of measures over preferences and assessors."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_OVER = ["all", "implied", "retrieved"]
_MEAN = ["preferences", "pairs", "users"]

VARIED: dict[str, list[Any]] = {
    "NumPrefs.of": ["possible"],
    "NumPrefs.over": _OVER[1:],
    "PrefShare.over": _OVER[1:],
    "PrefShare.mean": _MEAN[1:],
    "BalancedPrefShare.over": ["retrieved"],
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "NumPrefs.of": st.sampled_from(["satisfied", "possible"]),
    "NumPrefs.over": st.sampled_from(_OVER),
    "PrefShare.over": st.sampled_from(_OVER),
    "PrefShare.mean": st.sampled_from(_MEAN),
    "BalancedPrefShare.over": st.sampled_from(["all", "retrieved"]),
}

# Two users. The first prefers the first document to the others; the second the third, then the second.
_TWO: list[Any] = [(1, 0), (0, 1), None, (0, 3)]
ORACLE = {
    "NumPrefs": ("NumPrefs", [2, 0, None, 3], [1], 3.0, "by hand: 2 > 0 and 2, 3 > 1 of the missing one, not 0 < 3"),
    "PrefShare": ("PrefShare(mean=pairs)", _TWO, [], (1 / 2 + 1 / 2 + 0) / 3, "by hand: pairs 1-2, 1-3, 2-3"),
    "BalancedPrefShare": (
        "BalancedPrefShare",
        [1, 0, 2],
        [],
        (1 + 2 * 1) / (3 + 2 * 1),
        "by hand: one of three pairs is correct; two relevant, one not, one more of grade 0 below both",
    ),
    "APjg": ("APjg", [(1, 0), (0, 1), (1, 1)], [(0, 1)], ((1 + 2 / 3) / 2 + (1 / 2 + 2 / 3) / 3) / 2, "by hand"),
    "Pjg": ("Pjg@2", [(1, 0), (1, 1)], [(0, 1)], (1 + 1 / 2) / 2, "by hand"),
    "RprecMultJg": ("RprecMultJg@1", [(1, 0), (1, 1)], [(0, 1)], (1 + 1 / 2) / 2, "by hand: R is 2 for both"),
}
