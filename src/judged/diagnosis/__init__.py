"""Where and why it fails: the stage that lost it, the quadrant of a slice, disagreement, needs, reviews and diffs."""
