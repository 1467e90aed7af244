"""User studies: several people try the same tasks on each of several systems."""

from judged._lazily import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.studies.records": ("StudyRecords",),
    },
)
