"""The forms in which every answer comes, for those who name them: the command line needs no more at its start."""

PICTURES = ("png", "svg", "pdf")
FORMS = ("table", "markdown", "latex", "csv", "json", "html", *PICTURES, "parquet")
"""What every answer can be written as: the text of a terminal, and the others."""
SUFFIXES = {
    "": "table",
    ".txt": "table",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".png": "png",
    ".svg": "svg",
    ".pdf": "pdf",
    ".parquet": "parquet",
}
