# Written by tools/docs.py: names that `judged.data` exports and imports at first use.

from judged.data.attributes import Attributes as Attributes
from judged.data.check_files import check as check
from judged.data.check_files import check_one as check_one
from judged.data.check_files import check_qrels as check_qrels
from judged.data.check_files import check_run as check_run
from judged.data.convert_files import convert as convert
from judged.data.documents import Documents as Documents
from judged.data.findings import Finding as Finding
from judged.data.findings import Findings as Findings
from judged.data.freshness import DatedDocuments as DatedDocuments
from judged.data.freshness import dated_documents as dated_documents
from judged.data.qrels import Qrels as Qrels
from judged.data.run import Run as Run
from judged.data.texts import Texts as Texts
from judged.data.topics import Topics as Topics
from judged.data.write import write_qrels as write_qrels
from judged.data.write import write_run as write_run
