"""Topics and slices against two measures, and the topics of a part of that picture."""
