"""Agreement between judges, its effect on system rankings, and the reproducibility of runs."""

from judged.comparison.agreement.agree import agree
from judged.comparison.agreement.answer import JudgeAgreement, JudgeEffect, PairAgreement, TopicAgreement
from judged.comparison.agreement.reproduce import Reproduction, reproduce

__all__ = ["JudgeAgreement", "JudgeEffect", "PairAgreement", "Reproduction", "TopicAgreement", "agree", "reproduce"]
