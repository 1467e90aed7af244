"""Estimation of metrics from facts: sums by user, moments, intervals, quantiles, survival, time series."""
