"""How metrics of a log are shown: tables for people, rows for programs, charts."""
