"""The judging page: people grade documents, one task after the other, and settle where they disagree."""
