"""Readers of interaction logs. Each known layout is read into the same two raw tables.

Start with `judged.online.storage.read_raw`, which detects the layout and calls its reader.
"""
