"""Run commands that write files while they are killed, interrupted, out of disk space, or run concurrently.

``make faults`` runs everything in about half an hour and prints a table. Full disks need root, because each is a tmpfs
that is mounted for the test. ``make faults ARGS="--only 'labels new' --kills 5"`` runs a part.

`commands` lists the commands, `state` compares the files they leave with the old and the new content, and `signals`,
`disks`, and `writers` cause the failures. `test_faults.py` runs a small part that needs no root.
"""
