"""Names of measures in other tools, and the equivalent measures of `judged`."""
