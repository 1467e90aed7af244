"""Comparing systems: tests over topics, corrections, effects, and the tables that a paper needs."""

from judged.comparison.choices import Choices
from judged.comparison.collections import Collections, compare_collections
from judged.comparison.comparing import compare
from judged.comparison.comparison import Comparison
from judged.comparison.orders import OrderAgreement, Orders, orders
from judged.comparison.pair import MeasureComparison, Pair

__all__ = [
    "Choices",
    "Collections",
    "Comparison",
    "MeasureComparison",
    "OrderAgreement",
    "Orders",
    "Pair",
    "compare",
    "compare_collections",
    "orders",
]
