"""Two runs over the same topics: the verdict, what it rests on, and every topic."""
