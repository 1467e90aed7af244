"""Readers of interaction logs: every layout that is known becomes the same two raw tables.

Start reading at `judged.online.storage.read_raw`, which finds the layout and calls its reader.
"""
