# Written by tools/docs.py: what `judged.reports` exports; it is imported at its first use.

from judged.reports.answer import Report as Report
from judged.reports.build import report as report
