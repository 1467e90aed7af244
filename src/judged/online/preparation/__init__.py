"""Raw rows made into typed tables: rules with counts, ranks, sessions."""
