"""Two rankers on the same list: what clicks say of them, and how many users that takes."""
