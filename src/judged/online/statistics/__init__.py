"""Statistics that only logs of users need: control charts, allocation, survival, changes, clusters of users."""
