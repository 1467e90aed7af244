"""Web pages about labels: judging, disagreements, and label quality."""
