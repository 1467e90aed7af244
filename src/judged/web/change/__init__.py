"""The page of a change: two of the open runs, and whatever else is open."""
