"""List of topics, and the page of one topic."""
