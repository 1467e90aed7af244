"""Pages about labels: judging, disagreements, and how far labels can be trusted."""
