"""How far several judges agree, what their disagreement does to systems, and whether a result was reproduced."""

from judged.agreement.agreeing import agree
from judged.agreement.reproducing import Reproduction, reproduce
from judged.agreement.result import JudgeAgreement
from judged.agreement.two_judges import PairAgreement, SystemEffect, TopicAgreement

__all__ = [
    "JudgeAgreement",
    "PairAgreement",
    "Reproduction",
    "SystemEffect",
    "TopicAgreement",
    "agree",
    "reproduce",
]
