"""What a column may be declared as, by its name and by the type that its file states: never by a value."""

import re
from dataclasses import dataclass, field

from sourdine.tables.blocks import BLANK

TYPES = {
    "integer": "whole numbers",
    "real": "numbers",
    "category": "a known list of keys",
    "flag": "true or false",
    "text": "keys nobody can list",
    "date": "days",
    "datetime": "days with times",
}
FIELDS: dict[str, dict[str, object]] = {  # what a declaration cannot do without
    "integer": {"lower": BLANK, "upper": BLANK},
    "real": {"lower": BLANK, "upper": BLANK},
    "category": {"keys": [BLANK]},
    "flag": {},
    "text": {},
    "date": {"first": BLANK, "last": BLANK, "period": "month"},
    "datetime": {"first": BLANK, "last": BLANK, "period": "month"},
}


@dataclass(frozen=True)
class Suggestion:
    """A declaration to begin with, and why; none if the column is better left out."""

    block: dict[str, object] | None
    why: str
    hints: dict[str, str] = field(default_factory=dict)  # what a blank may be, by its field

    @property
    def words(self) -> str:
        """What is suggested, as people say it."""
        if self.block is None:
            return "leave it out"
        kind = TYPES[str(self.block["type"])]
        lower, upper = self.block.get("lower", BLANK), self.block.get("upper", BLANK)
        ends = [f"from {lower}"] if lower != BLANK else []
        return " ".join([kind, *ends, *([f"to {upper}"] if upper != BLANK else [])])


def _numbers(kind: str, lower: object = BLANK, upper: object = BLANK) -> dict[str, object]:
    return {"type": kind, "lower": lower, "upper": upper}


_RULES: tuple[tuple[str, Suggestion], ...] = (
    (
        r"(id|uid|uuid|key|nr|no|ssn|nir|iban)|.*_(id|uid|uuid|key|nr)|(id|person|patient|user)_?(id|nr|no|number)",
        Suggestion(None, "It tells people or records apart. Use it as the unit's column, if at all."),
    ),
    (
        r".*(name|mail|phone|address)|(.*_)?(street|ip)",
        Suggestion(None, "It may point to one person, and is no answer to a question."),
    ),
    (r"age|.*_age|age_.*", Suggestion(_numbers("integer", 0, 120), "An age in years.")),
    (
        r"(birth_?)?year|.*_year|year_.*",
        Suggestion(_numbers("integer"), "A year.", {"lower": "1900", "upper": "2030"}),
    ),
    (
        r"sex|gender",
        Suggestion({"type": "category", "keys": [BLANK]}, "A short list.", {"keys": "f\nm"}),
    ),
    (
        r"(is|has|was|did)_.*|smoker|active|married|employed|deceased|consent",
        Suggestion({"type": "flag"}, "It reads like yes or no."),
    ),
    (
        r"(date|day|born|joined|seen|birthday|dob)|.*(_date|_day|_on)|(date)_.*",
        Suggestion(
            {"type": "date", **FIELDS["date"]}, "A day.", {"first": "2020-01-01", "last": "2029-12-31"}
        ),
    ),
    (
        r"(time|timestamp|datetime)|.*(_at|_time|timestamp)",
        Suggestion(
            {"type": "datetime", **FIELDS["datetime"]},
            "A time.",
            {"first": "2020-01-01", "last": "2029-12-31"},
        ),
    ),
    (
        r".*(pay|salary|wage|income|price|cost|amount|revenue|turnover|rent|spend|spent|fee).*",
        Suggestion(_numbers("real", 0), "An amount of money.", {"upper": "200000"}),
    ),
    (
        r".*(percent|percentage|pct).*",
        Suggestion(_numbers("real", 0, 100), "A share in per cent."),
    ),
    (
        r"(n|num|number|count|visits|children|rooms|hours|days|weeks|months|years)(_.*)?|.*_(count|num|visits|hours|days)",
        Suggestion(_numbers("integer", 0), "It counts something.", {"upper": "100"}),
    ),
    (
        r"height(_cm)?|weight(_kg)?",
        Suggestion(_numbers("real", 0), "A measure of a body.", {"upper": "300"}),
    ),
    (
        r".*_(mm|cm|m|km|mg|g|kg|ml|l|ms|s|sec|min|usd|eur|gbp|mpg|hp)|"
        r"(.*_)?(length|width|depth|height|mass|weight|distance|duration|area|volume|score|rate|speed)(_.*)?",
        Suggestion(_numbers("real", 0), "A measure.", {"upper": "1000"}),
    ),
    (
        r"(.*_)?(region|department|country|state|province|sector|industry|status|category|class|level|kind|type|grade|"
        r"species|island|race|ethnicity|education|marital|relationship|workclass|work_class|religion|nationality|"
        r"language|colou?r|brand|group|team|origin|continent)(_.*)?",
        Suggestion({"type": "category", "keys": [BLANK]}, "It reads like a list.", {"keys": "north\nsouth"}),
    ),
    (
        r"(town|city|village|place|municipality|postcode|zip|occupation|job|diagnosis|product)(_.*)?",
        Suggestion({"type": "text"}, "A list that is too long to write down."),
    ),
)


def suggest(name: str, stated: str | None) -> Suggestion | None:
    """What a column may be, by its name and by the type that its file states, '' if it states none.

    >>> suggest("age", "").words
    'whole numbers from 0 to 120'
    >>> suggest("age", "text") is None, suggest("q17", "integer").words
    (True, 'whole numbers')
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip()).lower().replace(" ", "_").replace("-", "_")
    by_name = next((each for pattern, each in _RULES if re.fullmatch(pattern, plain)), None)
    if stated is None:
        return Suggestion(None, "Its type cannot be asked about.")
    if by_name is not None and (by_name.block is None or _fits(str(by_name.block["type"]), stated)):
        return by_name
    kind = {"zoned": "datetime", "text": ""}.get(stated, stated)
    if not kind:
        return None
    more = {"zone": BLANK} if stated == "zoned" else {}
    return Suggestion({"type": kind, **FIELDS[kind], **more}, "The file states this type.")


def _fits(kind: str, stated: str) -> bool:
    """Whether a column of the type that its file states can be declared so."""
    alike = {
        "": tuple(TYPES),
        "integer": ("integer", "real", "category"),
        "real": ("real",),
        "text": ("category", "text"),
        "zoned": (),
        "datetime": ("datetime", "date"),
    }
    return kind in alike.get(stated, (stated,))
