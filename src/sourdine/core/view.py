"""How objects show themselves, in notebooks and where they are printed.

What people read is made in `report`, above all that can be shown, and nothing below may import it. So a
class says no more than that it is `Viewable`. When one is first shown, the module of `report.views` with
the name of its package is loaded, and registers its views here.
"""

from functools import singledispatch
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from sourdine.core.figure import Figure

_VIEWS = "sourdine.report.views"
_PAGES = "sourdine.report.pages.release"  # the only ones so far: a page needs few of what views do


class WebPage(Protocol):
    """What browsers show."""

    def html(self) -> str:
        """A page, or a part of one."""


class Readable(WebPage, Protocol):
    """What is shown of an object, for two kinds of places: a notebook has a part of a page."""

    def text(self) -> str:
        """For a terminal: lines."""


@singledispatch
def view(thing: object) -> Readable:
    """What is shown of an object; `report.views` registers one function for each class."""
    raise TypeError(f"There is no view of {type(thing).__name__}")


@singledispatch
def figure(thing: object, *which: str | None) -> Figure:
    """The figure of an object, or of the part of it that is named; registered like views."""
    raise TypeError(f"There is no figure of {type(thing).__name__}")


@singledispatch
def page(thing: object, *beside: object) -> WebPage:
    """The page of an object, from what is published beside it; the module of the page registers it."""
    raise TypeError(f"There is no page of {type(thing).__name__}")


def view_of(thing: object) -> Readable:
    """What is shown of an object."""
    load_views(type(thing))
    return view(thing)


def figure_of(thing: object, *which: str | None) -> Figure:
    """The figure of an object."""
    load_views(type(thing))
    return figure(thing, *which)


def page_of(thing: object, *beside: object) -> WebPage:
    """The page of an object."""
    load_pages()
    return page(thing, *beside)


def load_pages() -> None:
    """Load what draws pages."""
    import_module(_PAGES)


def load_views(kind: type) -> None:
    """Load the views of the packages that a class and its parents come from."""
    for parent in kind.__mro__:
        package, _, rest = parent.__module__.partition(".")
        name = f"{_VIEWS}.{rest.partition('.')[0]}"
        if package == "sourdine" and rest and find_spec(name):
            import_module(name)


class Viewable:
    """Shows itself in notebooks and where it is printed; `repr` stays one line."""

    def _repr_html_(self) -> str:
        return view_of(self).html()

    def __str__(self) -> str:
        return view_of(self).text()
