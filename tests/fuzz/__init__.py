"""Damaged files for every reader: each ends in a result, or in an error that names the file.

``make fuzz N=100000`` runs as many cases as one likes, ``make fuzz N="--of logs 5000"`` those of interaction logs;
`test_fuzz.py` runs some seconds of both. A case is a number: from it follow the reader, the file and what is done to it
(`cases`, over `originals`, `logs` and `mutations`). Cases run in long-lived processes (`workers`), which die of what
would kill or hang a user's process, and are missed.
"""
