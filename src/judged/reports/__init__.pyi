# Written by tools/docs.py: names that `judged.reports` exports and imports at first use.

from judged.reports.answer import Report as Report
from judged.reports.build import report as report
