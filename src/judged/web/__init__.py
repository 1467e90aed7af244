"""The workbench: pages and an API over the same functions that a Python user calls. No arithmetic here."""
