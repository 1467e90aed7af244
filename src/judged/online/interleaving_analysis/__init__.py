"""Interleaving: preference between two rankers from clicks on mixed lists, validity checks, and planning."""
