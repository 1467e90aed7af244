"""The registry of metrics of user behaviour: each one written down as data."""
