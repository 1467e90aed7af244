"""Preparation of typed tables from raw rows: rules, ranks, and sessions."""
