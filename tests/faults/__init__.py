"""Commands that write, while they are killed, interrupted, out of disk space, or run side by side.

``make faults`` runs all of it, in about half an hour, and prints a table; full disks need root, as each is a tmpfs that
is mounted for it. ``make faults ARGS="--only 'labels new' --kills 5"`` runs a part. `commands` lists what is run, `state`
compares what is left with what may be left, and `signals`, `disks`, and `writers` disturb it. `test_faults.py` runs a
small part that needs no root.
"""
