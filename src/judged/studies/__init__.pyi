# Written by tools/docs.py: what `judged.studies` exports; it is imported at its first use.

from judged.studies.records import StudyRecords as StudyRecords
