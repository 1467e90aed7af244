"""Commands of this component: a file for each family."""
