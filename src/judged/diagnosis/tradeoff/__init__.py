"""Gain against cost."""

from judged.diagnosis.tradeoff.making import tradeoff
from judged.diagnosis.tradeoff.result import Tradeoff, TradeoffRow

__all__ = ["Tradeoff", "TradeoffRow", "tradeoff"]
