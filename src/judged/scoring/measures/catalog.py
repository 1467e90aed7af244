"""Module and classes of each measure.

It contains names only, so that ``import judged`` and a command that uses five measures do not import all eighty.
"""

from __future__ import annotations

MODULES: dict[str, tuple[str, ...]] = {
    "precision": ("P", "SetP", "R", "SetR", "F", "SetF", "Success", "Rprec", "RprecMult", "RelP", "SetRelP"),
    "rr": ("RR", "Yaap", "Utility"),
    "ap": ("AP", "GMAP", "SetAP", "AP11", "IPrec", "InfAP"),
    "graded": ("BinG", "G", "GAP", "Q"),
    "rbp": ("RBP", "RBPResidual", "INSQ", "INST", "TrAP"),
    "dcg": ("RnDCG", "nDCGrel", "nDCG", "NCG", "CG", "DCG", "IdealDCG", "SDCG"),
    "preferences": ("Bpref", "GMBpref", "BalancedPrefShare", "NumPrefs", "PrefShare"),
    "counts": ("JudgedShare", "UnjudgedShare", "Hole", "NumNonrelRet", "NumQ", "NumRel", "NumRelRet", "NumRet"),
    "accuracy": ("Accuracy", "PairAccuracy", "Compat", "Fallout", "Generality"),
    "awrf": ("AWRF",),
    "diversity": ("AlphaDCG", "AlphanDCG", "APIA", "PIA", "StRecall"),
    "err": ("ERRIA", "nERRIA", "NRBP", "nNRBP", "NERR8", "NERR9", "NERR10", "NERR11", "ERR"),
    "assessors": ("APjg", "Pjg", "RprecMultJg"),
    "user_models": ("BPM", "BPMD", "IFT1", "IFT2", "IFT12", "CwlTBG", "CwlU"),
    "time_biased": ("TBG", "UMeasure"),
    "answers": (
        "NuggetRecall",
        "Completeness",
        "Correctness",
        "RightAbstention",
        "WrongAbstention",
        "AnswerLength",
        "CitationRecall",
        "CitationPrecision",
        "ContextUtility",
        "EvidencePosition",
        "ContextRedundancy",
    ),
    "answer_texts": ("ExactMatch", "TokenF1", "AnswerRecall", "LexicalSupport"),
    "searches": (
        "SeenR",
        "SeenP",
        "SeennDCG",
        "RecallPerSearch",
        "NumSearches",
        "SearchesToEvidence",
        "RedundantSearches",
        "RepeatedSearches",
        "LateSearches",
        "UnusedSearches",
        "EvidenceYield",
        "HopRecall",
    ),
    "sessions": ("SessionDCG", "nSessionDCG"),
    "trials": ("AnswerAccuracy", "Pass", "PassAll", "ConfidenceBrier", "ConfidenceLogLoss", "Effort"),
    "support": ("SupportP", "SupportR", "SentencePrecision", "ArgueF", "Groundedness", "ContradictionRate"),
}

_OTHER_NAMES = {"JudgedShare": "Judged", "UnjudgedShare": "Unjudged"}
"""Measures whose name differs from the name of the class."""

MODULE_BY_MEASURE = {_OTHER_NAMES.get(cls, cls): module for module, classes in MODULES.items() for cls in classes}
"""Module of each measure, by the name of the measure."""
