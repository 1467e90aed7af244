"""trec_eval's command on our engine: its options, names of measures, output and exit codes."""
