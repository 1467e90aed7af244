"""Where each measure stands: the module of `judged.measures` and the classes in it.

Names only, so that ``import judged`` and a command that uses five measures need not import all eighty.
"""

from __future__ import annotations

MODULES: dict[str, tuple[str, ...]] = {
    "precision": ("P", "SetP"),
    "recall": ("R", "SetR"),
    "f": ("F", "SetF"),
    "success": ("Success",),
    "rr": ("RR",),
    "ap": ("AP",),
    "rprec": ("Rprec",),
    "ndcg": ("nDCG",),
    "dcg": ("CG", "DCG"),
    "bpref": ("Bpref",),
    "shares": ("JudgedShare", "UnjudgedShare"),
    "counts": ("NumQ", "NumRel", "NumRelRet", "NumRet"),
    "accuracy": ("Accuracy",),
}

_OTHER_NAMES = {"JudgedShare": "Judged", "UnjudgedShare": "Unjudged"}
"""Measures that cannot be called as their class is."""

HOMES = {_OTHER_NAMES.get(cls, cls): module for module, classes in MODULES.items() for cls in classes}
"""The module of each measure, by the measure's name."""
