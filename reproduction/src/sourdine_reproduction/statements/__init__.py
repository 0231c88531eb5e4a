"""Every statement of the source documents that is judged here, by name: what they say, word for word."""

from sourdine_reproduction.statements import (
    notes,
    report,
    slides,
    thesis_learning,
    thesis_privacy,
    thesis_rappor,
)
from sourdine_reproduction.statements.base import MEANING, PublishedStatement, SourceDocument, Standing

_PARTS = (report, notes, thesis_privacy, thesis_learning, thesis_rappor, slides)
STATEMENTS = {each.name: each for part in _PARTS for each in part.STATEMENTS}
SOURCES = tuple(dict.fromkeys(each.source for each in STATEMENTS.values()))

__all__ = ["MEANING", "SOURCES", "STATEMENTS", "PublishedStatement", "SourceDocument", "Standing"]
