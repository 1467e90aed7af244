"""The pages of a study: what participants see, one page after the other, and what an observer writes."""
