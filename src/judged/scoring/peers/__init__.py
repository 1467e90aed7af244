"""What other tools call our measures, each name read as its tool means it."""
