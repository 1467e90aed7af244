"""How far a score could move: ties, unjudged documents, pools."""
