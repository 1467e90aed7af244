"""Pages of the core, and what the pages of all components share."""
