"""Pages about logs of users: clicks, A/B tests, and the watch."""
