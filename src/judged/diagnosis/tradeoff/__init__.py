"""Gain against cost."""

from judged.diagnosis.tradeoff.answer import Tradeoff, TradeoffRow
from judged.diagnosis.tradeoff.tradeoff import tradeoff, tradeoff_of_scores

__all__ = ["Tradeoff", "TradeoffRow", "tradeoff", "tradeoff_of_scores"]
