"""Read damaged files with each reader: the outcome must be a result, or an error that names the file.

``make fuzz N=100000`` runs this number of cases, ``make fuzz N="--of logs 5000"`` only cases of interaction logs, and
`test_fuzz.py` runs some seconds of both. A case is a number, which determines the reader, the file, and the damage
(`cases`, with `originals`, `logs`, and `mutations`). Cases run in long-lived processes (`workers`). If a case kills or
blocks a worker, this is reported.
"""
