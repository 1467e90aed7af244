"""Pages of traces: the funnel, kinds of failure, and the way of a topic's documents through the stages."""
