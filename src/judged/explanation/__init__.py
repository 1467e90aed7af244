"""How a score comes about, and what other tools report in its place."""

from judged.explanation.comparison import Comparison, compare_tools
from judged.explanation.explaining import explain
from judged.explanation.explanation import Explanation
from judged.explanation.sheets import Line, Sheet

__all__ = ["Comparison", "Explanation", "Line", "Sheet", "compare_tools", "explain"]
