"""Statistics of numbers by topic and system. This layer knows no measure and no file."""

from judged.stats.interval import IntervalMethod, IntervalName, mean_intervals
from judged.stats.student import student_cdf, student_quantile

__all__ = ["IntervalMethod", "IntervalName", "mean_intervals", "student_cdf", "student_quantile"]
