"""Core commands."""
