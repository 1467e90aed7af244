"""From facts to estimates: sums by user, moments, intervals, quantiles, survival, series."""
