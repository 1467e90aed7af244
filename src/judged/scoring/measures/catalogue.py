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
    "ap": ("AP", "GMAP", "SetAP"),
    "rprec": ("Rprec", "RprecMult"),
    "interpolated": ("AP11", "IPrec"),
    "relative": ("RelP", "SetRelP"),
    "yaap": ("Yaap",),
    "g": ("BinG", "G"),
    "rbp": ("RBP", "RBPResidual"),
    "infap": ("InfAP",),
    "utility": ("Utility",),
    "rank_ndcg": ("RnDCG", "nDCGrel"),
    "ndcg": ("nDCG", "NCG"),
    "dcg": ("CG", "DCG", "IdealDCG"),
    "bpref": ("Bpref", "GMBpref"),
    "shares": ("JudgedShare", "UnjudgedShare", "Hole"),
    "counts": ("NumNonrelRet", "NumQ", "NumRel", "NumRelRet", "NumRet"),
    "accuracy": ("Accuracy",),
    "pair_accuracy": ("PairAccuracy",),
    "compatibility": ("Compat",),
    "gap": ("GAP",),
    "qmeasure": ("Q",),
    "fallout": ("Fallout", "Generality"),
    "awrf": ("AWRF",),
    "alpha_dcg": ("AlphaDCG", "AlphanDCG"),
    "err_ia": ("ERRIA", "nERRIA"),
    "nrbp": ("NRBP", "nNRBP"),
    "intent_aware": ("APIA", "PIA", "StRecall"),
    "preferences": ("BalancedPrefShare", "NumPrefs", "PrefShare"),
    "assessors": ("APjg", "Pjg", "RprecMultJg"),
    "inst": ("INSQ", "INST"),
    "nerr": ("NERR8", "NERR9", "NERR10", "NERR11"),
    "bpm": ("BPM", "BPMD"),
    "sdcg": ("SDCG",),
    "trap": ("TrAP",),
    "ift": ("IFT1", "IFT2", "IFT12"),
    "decay": ("CwlTBG", "CwlU"),
    "err": ("ERR",),
    "tbg": ("TBG",),
    "umeasure": ("UMeasure",),
    "nuggets": ("NuggetRecall", "Completeness"),
    "support": ("SupportP", "SupportR", "SentencePrecision", "ArgueF", "Groundedness", "ContradictionRate"),
    "answers": ("Correctness", "RightAbstention", "WrongAbstention", "AnswerLength"),
    "contexts": ("CitationRecall", "ContextUtility", "EvidencePosition", "ContextRedundancy"),
}

_OTHER_NAMES = {"JudgedShare": "Judged", "UnjudgedShare": "Unjudged"}
"""Measures that cannot be called as their class is."""

HOMES = {_OTHER_NAMES.get(cls, cls): module for module, classes in MODULES.items() for cls in classes}
"""The module of each measure, by the measure's name."""
