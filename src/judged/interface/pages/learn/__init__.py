"""Learning pages: catalogue, lessons, a page per measure, and the chooser."""
