"""The leaderboard: every run by the chosen measures, tested against a baseline, over all topics or a slice."""
