"""Web workbench: pages and a JSON API over the Python functions. It contains no computations."""
