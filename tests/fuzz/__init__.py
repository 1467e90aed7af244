"""Damaged files for every reader but those of logs: each ends in a result, or in an error that names the file.

``make fuzz N=100000`` runs as many cases as one likes; `test_fuzz.py` runs some seconds of them. A case is a number:
from it follow the reader, the file and what is done to it (`cases`, over `originals` and `mutations`). Cases run in
long-lived processes (`workers`), which die of what would kill or hang a user's process, and are missed.
"""
