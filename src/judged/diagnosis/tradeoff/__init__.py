"""Gain against cost."""

from judged.diagnosis.tradeoff.answer import Tradeoff, TradeoffRow
from judged.diagnosis.tradeoff.front import tradeoff, tradeoff_of_scores

__all__ = ["Tradeoff", "TradeoffRow", "tradeoff", "tradeoff_of_scores"]
