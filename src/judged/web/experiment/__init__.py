"""Pages of an experiment: what may be concluded from it, and a query that is tried live."""
