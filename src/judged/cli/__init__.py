"""The command line. It contains no computations, and uses only the public API."""
