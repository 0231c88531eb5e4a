"""The statements of the source documents that are judged here, in their own words and in English."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Standing(StrEnum):
    """The five verdicts on a statement."""

    REPRODUCED = "reproduced"
    LOOSE = "true, but loose"
    OTHERWISE = "not reproduced"
    WRONG = "wrong"
    UNTESTED = "not tested here"


MEANING = {
    Standing.REPRODUCED: "What is stated comes out here as well: a number at the digits that are printed, a "
    "measurement within its own chance, a comparison with the same side ahead.",
    Standing.LOOSE: "A bound, a cost or a method that holds as stated, where a clearly smaller cost or error "
    "is proven or shown here.",
    Standing.OTHERWISE: "A measurement that comes out otherwise here, done as the source describes it. It "
    "may have been right for the code and the data that the source had.",
    Standing.WRONG: "A formula, a theorem, a guarantee or a number that a proof contradicts, or a "
    "computation from what the source itself prints.",
    Standing.UNTESTED: "The data or the program that the statement is about are not at hand. What stands "
    "beside it is about something else, and says so.",
}


@dataclass(frozen=True, kw_only=True)
class SourceDocument:
    """A document, or a part of one that has a page of its own here."""

    name: str
    title: str
    document: str  # who wrote what, and when
    places: str  # how places in it are told


@dataclass(frozen=True, kw_only=True)
class PublishedStatement:
    """One sentence of a source, counted once."""

    name: str
    source: SourceDocument
    place: str  # section and page, as far as the text tells them
    sentence: str  # in the words of the source; … where something is left out
    english: str
    claim: str  # in a few words
    published: str  # what is printed; what only follows from it says so
    question: bool = False  # left open by the source itself: answered here, and not judged


def _read_statements() -> Iterator[PublishedStatement]:
    with Path(__file__).with_name("statements.toml").open("rb") as file:
        for described in tomllib.load(file)["source"]:
            statements = described.pop("statement")
            source = SourceDocument(**described)
            yield from (PublishedStatement(source=source, **each) for each in statements)


STATEMENTS = {each.name: each for each in _read_statements()}
SOURCES = tuple(dict.fromkeys(each.source for each in STATEMENTS.values()))
