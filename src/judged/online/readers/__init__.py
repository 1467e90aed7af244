"""Readers of interaction logs: every layout that is known becomes the same two raw tables.

Start reading in `judged.online.readers.files`: `read_raw` finds the layout and calls its reader.
"""
