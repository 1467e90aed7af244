"""Pages of the core, and code shared by the pages of all components."""
