"""Slices of a log: each page is in exactly one, by a logged attribute, its text, its time, or its clicks."""

from judged.online.slicing.columns import bucket_starts, pages_where
from judged.online.slicing.results import SlicedPages, slice_names, slice_pages

__all__ = ["SlicedPages", "bucket_starts", "pages_where", "slice_names", "slice_pages"]
