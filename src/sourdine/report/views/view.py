"""An object as a part of a page, or as lines of text, from the same sections."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sourdine.core.text import tame
from sourdine.report.view import Page, Section

_LINE = 100  # characters


@dataclass(frozen=True, kw_only=True)
class View(Page):
    """What is shown of an object: a title, a sentence, and sections, of which those with a title are folded.

    >>> print(View(title="A plan", lead="Nothing is spent.", sections=()).text())
    A plan
    Nothing is spent.
    """

    template: ClassVar[str] = "view.html"
    lead: str = ""
    sections: tuple[Section, ...] = ()

    def text(self) -> str:
        """The same for a terminal."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _wrapped(self.title)
        if self.lead:
            yield from _wrapped(self.lead)
        for section in self.sections:
            if section.title:
                yield f"\n{tame(section.title)}"
            for paragraph in section.paragraphs:
                yield from _wrapped(paragraph)
            for point in section.points:
                yield from _wrapped(point, "- ")
            for table in () if section.title else section.tables:  # what is folded is told in its sentences
                yield ""
                yield from table.lines()


def _wrapped(text: str, first: str = "") -> list[str]:
    return textwrap.wrap(tame(text), _LINE, initial_indent=first, subsequent_indent=" " * len(first))
