"""How far several judges agree, what their disagreement does to systems, and whether a result was reproduced."""

from judged.agreement.agree import agree
from judged.agreement.answer import JudgeAgreement, PairAgreement, SystemEffect, TopicAgreement
from judged.agreement.reproduce import Reproduction, reproduce

__all__ = [
    "JudgeAgreement",
    "PairAgreement",
    "Reproduction",
    "SystemEffect",
    "TopicAgreement",
    "agree",
    "reproduce",
]
