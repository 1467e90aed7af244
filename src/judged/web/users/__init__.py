"""The pages of what users did: A/B tests, and the watch over a running system."""
