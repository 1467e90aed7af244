"""Judgments against users: whether one predicts the other."""

from judged.online.offline.against import against_qrels
from judged.online.offline.agreement import preference_agreement
from judged.online.offline.agreement_answer import RULES, AgreementRow, PreferenceAgreement, Repeated, click_preferences
from judged.online.offline.answer import CalibrationBin, OfflineOnline, Relation, TopicRelation
from judged.online.offline.concordance import Estimate

__all__ = [
    "RULES",
    "AgreementRow",
    "CalibrationBin",
    "Estimate",
    "OfflineOnline",
    "PreferenceAgreement",
    "Relation",
    "Repeated",
    "TopicRelation",
    "against_qrels",
    "click_preferences",
    "preference_agreement",
]
