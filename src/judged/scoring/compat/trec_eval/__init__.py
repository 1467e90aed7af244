"""trec_eval's command, with its options, names of measures, output, and exit codes."""
