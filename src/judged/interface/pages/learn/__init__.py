"""Pages to learn from: the catalogue, lessons, a page for each measure, and the chooser."""
