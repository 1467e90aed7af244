"""Learning pages: catalog, lessons, a page per measure, and the chooser."""
