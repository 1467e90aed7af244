"""The pages of clicks: which model fits a log, how often ranks are looked at, and clicks against people."""
