"""The command line: no arithmetic here, only what a user of the library could do too."""
