"""What is read off a series at each period: totals, the period alone, windows, and their change in a year."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms.correlation.participation import MOST_PERIODS

Span = tuple[int, int]


@dataclass(frozen=True)
class SeriesView:
    """The sum of the last `window` periods (of all, if none is said), perhaps less that of `against` earlier.

    >>> SeriesView(window=4, against=52).label
    '4 periods against 52 before'
    """

    window: int | None = None
    against: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "against"):
            if getattr(self, name) is not None:
                count = check.integer("SeriesView", name, getattr(self, name), 1, MOST_PERIODS)
                check.keep(self, **{name: count})
        if self.against is not None and self.window is None:
            raise check.fail("SeriesView", "against", "come with a window", self.against)

    @classmethod
    def read(cls, form: object) -> "SeriesView":
        """A view as it stands in a file: "total", "period", { window = 4 }, { window = 4, against = 52 }."""
        if form == "total":
            return cls()
        if form == "period":
            return cls(window=1)
        if isinstance(form, Mapping) and set(form) <= {"window", "against"} and "window" in form:
            return cls(**form)
        raise InvalidParameter(
            'What a series publishes is "total", "period", { window = 4 } or { window = 4, against = 52 }. '
            "Write one of them, or a list."
        )

    @property
    def form(self) -> str | dict[str, int]:
        """The same as it stands in a file."""
        if self.window is None:
            return "total"
        if self.against is None:
            return "period" if self.window == 1 else {"window": self.window}
        return {"window": self.window, "against": self.against}

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        if self.window is None:
            return "total"
        words = "period" if self.window == 1 else f"{self.window} periods"
        return words if self.against is None else f"{words} against {self.against} before"

    @property
    def first(self) -> int:
        """The first period at which there is enough to read it off."""
        return (self.window or 1) + (self.against or 0)

    def spans(self, period: int) -> list[tuple[Span, int]]:
        """Which spans of periods are added (1) and taken away (-1) at a period."""
        if self.window is None:
            return [((1, period), 1)]
        spans = [((period - self.window + 1, period), 1)]
        if self.against is not None:
            before = period - self.against
            spans.append(((before - self.window + 1, before), -1))
        return spans

    def periods(self, until: int) -> Iterator[int]:
        """At which periods it is told."""
        return iter(range(self.first, until + 1))
