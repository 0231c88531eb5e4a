"""How dates and times are written in text: a format of strptime, of parts that every engine reads alike."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from sourdine.core.errors import InvalidParameter

_DIGITS = {"Y": "[0-9]{4}", "m": "[0-9]{1,2}", "d": "[0-9]{1,2}", "H": "[0-9]{1,2}"}
_PARTS = {
    **_DIGITS,
    "M": "[0-5][0-9]",
    "S": "[0-5][0-9]",
    "f": "[0-9]{1,6}",
    "z": "(?:Z|[+-](?:0[0-9]|1[0-4]):?[0-5][0-9])",
}
_NEEDS = {"H": "Ymd", "M": "H", "S": "HM", "f": "S", "z": "HM"}


@dataclass(frozen=True)
class TimeFormat:
    """A format such as %d/%m/%Y %H:%M.

    >>> written = TimeFormat("%d/%m/%Y")
    >>> written.pattern, written.plain
    ('([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})', '$3-$2-$1')
    """

    text: str

    def __post_init__(self) -> None:
        names = [part for part, is_name in self._tokens if is_name]
        for name in names:
            if name not in _PARTS:
                raise InvalidParameter(
                    f"A format of dates has no '%{name}' that every engine reads alike. Use "
                    f"{', '.join('%' + each for each in _PARTS)}, or convert the column to dates first."
                )
        if len(set(names)) != len(names) or not set("Ymd") <= set(names):
            raise InvalidParameter(
                "A format of dates needs %Y, %m and %d, each once. Write it like %d/%m/%Y %H:%M."
            )
        for name, needed in _NEEDS.items():
            if name in names and not set(needed) <= set(names):
                raise InvalidParameter(f"A format of dates with '%{name}' needs %{needed[-1]} too.")
        if not self.text.isprintable() or len(self.text) > 100:
            raise InvalidParameter(
                "A format of dates has at most 100 characters, without control characters."
            )

    @cached_property
    def _tokens(self) -> list[tuple[str, bool]]:
        """The parts in their order, each with whether it stands for a part of a date."""
        parts = re.findall(r"%(.)|([^%]+)|(%)$", self.text)
        return [(name or ("%" if end else plain), bool(name or end)) for name, plain, end in parts]

    @property
    def zoned(self) -> bool:
        """Whether a text says how far its clock is from UTC."""
        return ("z", True) in self._tokens

    @cached_property
    def pattern(self) -> str:
        """What texts look like, with a group for each part."""
        tight = {place for place, (one, two) in enumerate(pairwise(self._tokens)) if one[1] and two[1]}
        tight |= {
            place + 1 for place in tight
        }  # without anything between them, numbers have all their digits
        parts = []
        for place, (part, is_name) in enumerate(self._tokens):
            if not is_name:
                parts.append(re.escape(part))
            elif place in tight and part in "mdH":
                parts.append("([0-9]{2})")
            elif place in tight and part == "f":
                parts.append("([0-9]{6})")
            else:
                parts.append(f"({_PARTS[part]})")
        return "".join(parts)

    @property
    def plain(self) -> str:
        """The same time as 2024-12-31 18:00:00 by the groups of the pattern."""
        names = [part for part, is_name in self._tokens if is_name]
        group = {name: f"${place}" for place, name in enumerate(names, 1)}
        text = f"{group['Y']}-{group['m']}-{group['d']}"
        if "H" in group:
            seconds = group.get("S", "00") + (f".{group['f']}" if "f" in group else "")
            text += f" {group['H']}:{group.get('M', '00')}:{seconds}"
        return text + group.get("z", "")


ISO_DATE = TimeFormat("%Y-%m-%d")
ISO_TIMES = tuple(
    TimeFormat(f"%Y-%m-%d{mark}%H:%M{rest}") for mark in (" ", "T") for rest in (":%S", "", ":%S.%f")
)
"""How times are read where no format is declared."""
