"""Slices of the topics: which there are, and how runs do on each."""
