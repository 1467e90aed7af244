"""Commands of the core: a file for each family."""
