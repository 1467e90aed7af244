"""What results are made of, and the forms in which people and programs have them."""

from judged.answer.answer import FORMS, PICTURES, SUFFIXES, Answer
from judged.answer.blocks import Block, Chart, Code, Item, Line, Lists, Ranking, Section, Sentences
from judged.answer.table import (
    ANY,
    CHANGE,
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    YES_NO,
    Column,
    Show,
    Table,
    number,
    plain,
    significant,
)
from judged.decimals import counted, listed, wrapped

__all__ = [
    "ANY",
    "CHANGE",
    "COUNT",
    "FORMS",
    "NUMBER",
    "PICTURES",
    "SHARE",
    "SUFFIXES",
    "TEXT",
    "YES_NO",
    "Answer",
    "Block",
    "Chart",
    "Code",
    "Column",
    "Item",
    "Line",
    "Lists",
    "Ranking",
    "Section",
    "Sentences",
    "Show",
    "Table",
    "counted",
    "listed",
    "number",
    "plain",
    "significant",
    "wrapped",
]
