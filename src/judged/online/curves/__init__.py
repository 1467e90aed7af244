"""Curves of a log, and how they are shown: dwell times, thresholds of satisfied clicks, a metric over time."""
