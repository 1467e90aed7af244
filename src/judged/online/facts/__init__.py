"""Facts of clicks, pages and sessions: one row each, numbers only, of which every metric is a ratio of two sums."""
