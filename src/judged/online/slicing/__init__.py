"""Slices of a log: every page in exactly one, by what is logged of it, its text, its time or its clicks."""

from judged.online.slicing.columns import bucket_starts, pages_where
from judged.online.slicing.results import SlicedPages, slice_names, slice_pages

__all__ = ["SlicedPages", "bucket_starts", "pages_where", "slice_names", "slice_pages"]
