"""The list of topics, and the page of one topic."""
