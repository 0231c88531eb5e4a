"""`sourdine bounds`: find the bounds of a column privately, where nobody knows any."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sourdine.cli.plan import SpecFile
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, written

if TYPE_CHECKING:
    from sourdine.tables.bounds import BoundsPlan, FoundBounds

_NUMBERS = ("integer", "real")


def bounds(
    spec: SpecFile,
    *,
    column: Annotated[str, typer.Option(help="The column; its block may still be blank.")],
    epsilon: Annotated[str, typer.Option(help="What to spend on it, such as 0.1.")],
    kind: Annotated[
        Literal["integer", "real"] | None,
        typer.Option(
            "--type",
            help="Whole numbers or reals. Without it: as the column's block says, or real if the table "
            "itself has a type for it.",
        ),
    ] = None,
    outside: Annotated[float, typer.Option(help="The share of records that may lie outside.")] = 0.01,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it would cost and be worth.")] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Pay even if the declared size is too small for this epsilon.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Pay from the ledger to find bounds of a column, and print its block for the specification.

    Bounds that come from what a column means cost nothing and are better. This is for columns of which nobody
    knows any. All but a small share of the records lie within what is found, as far as the noise tells. The
    spend protects each unit with the epsilon given, on top of what releases spend. Where the specification
    declares a size that is too small for it, nothing is paid.

    Examples: sourdine bounds people.toml --column pay --epsilon 0.1 --plan ·
    sourdine bounds people.toml --column pay --epsilon 0.1 ·
    sourdine bounds people.toml --column visits --epsilon 0.05 --type integer --outside 0.02
    """
    from sourdine.accounting.ledger.numbers import left_words, readable
    from sourdine.core.distance import Neighbours
    from sourdine.frames.expressions.tree import decimal
    from sourdine.tables.bounds import BoundsPlan, check_numbers, load_draft, open_column, release_bounds

    specification, columns = load_draft(spec)
    block = columns.get(column)
    stated = block.get("type") if isinstance(block, dict) else None
    _refuse_text(column, stated)
    numbers: Literal["integer", "real"] = kind or ("integer" if stated == "integer" else "real")
    search = BoundsPlan(
        column=column,
        epsilon=number("bounds", "epsilon", epsilon, Fraction(1, 1 << 20), 1 << 10),
        kind=numbers,
        unit=specification.unit,
        neighbours=Neighbours(specification.privacy.neighbours),
        outside=outside,
        confidence=specification.privacy.confidence,
        caveats=specification.table.text.caveats,
    )
    promise = {"epsilon": str(search.epsilon), "unit": search.unit.name, "neighbours": str(search.neighbours)}
    if plan:
        if as_json:
            show.document({**promise, "column": column, "outside": outside, "records_off": search.off})
            return
        show.say(
            f"Bounds of {show.one_line(column)} at epsilon {written(search.epsilon)} for each "
            f"{show.one_line(search.unit.name)}, {search.neighbours} neighbours. Nothing was read or spent."
        )
        show.say(search.words + _worth(search, specification.table.size))
        return
    source = open_column(specification.places, search, specification.table.text)
    if kind is None and stated not in _NUMBERS:
        check_numbers(source, column, "--type integer or --type real")
    if not anyway:
        search.check_size(specification.table.size, "To pay all the same, say --anyway.")
    both = (
        decimal(specification.privacy.epsilon) + search.epsilon
    )  # what a ledger that is not there yet should hold
    with specification.open_ledger(both) as ledger:
        bounds = release_bounds(search, source, ledger)
    receipt = bounds.receipt
    assert receipt is not None
    if as_json:
        lower, upper = bounds.values
        show.document(
            {
                **promise,
                "column": column,
                "lower": lower,
                "upper": upper,
                "outside": outside,
                "records_off": search.off,
                "price": str(receipt.price),
                "left": str(receipt.left),
                "line": receipt.number,
                "block": bounds.block,
            }
        )
        return
    show.say(
        f"Paid {receipt.currency} {readable(receipt.price)} for each {show.one_line(search.unit.name)}, line "
        f"{receipt.number} of the ledger. {left_words(receipt.left, receipt.limit)}"
    )
    show.say(search.words + _worth(search, specification.table.size))
    show.say(
        "Put this into the specification, in place of the column's block. What that says of granularity "
        "and of missing values is worth keeping:"
    )
    show.line()
    show.lines(bounds.block)
    if _widest(bounds):
        show.say(
            "These bounds are about as wide as any can be: too few records hold a number for this epsilon, "
            "or none does. Check the column before you rely on them.",
            mark="WARNING: ",
        )


def _refuse_text(column: str, stated: object) -> None:
    """Refuse a column that is declared to hold something else than numbers."""
    if stated in ("category", "flag", "text"):
        raise InvalidParameter(
            f"The column '{column}' is declared with type = \"{stated}\", and only numbers have bounds. "
            'Nothing was spent. If it holds numbers, declare type = "integer" or "real".'
        )


def _widest(bounds: "FoundBounds") -> bool:
    """Whether nothing but noise was found: without numbers, both ends stay within a few rungs of the last."""
    from sourdine.tables.bounds import LADDERS

    ladder = LADDERS[bounds.plan.kind]
    lower, upper = bounds.values
    return bool(min(-lower, upper) >= ladder.below(ladder.places - 1) / 10)


def _worth(plan: "BoundsPlan", size: int | None) -> str:
    """What the promise comes to, if it is public how many records there are."""
    if size is None:
        return ""
    share = min(plan.outside + plan.off / size, 1.0)
    few = size < plan.enough
    remedy = " Take a larger epsilon, or bounds from what the column means." if few else ""
    return f" Here it is {100 * share:.3g} % of about {counted(size, 'record')}.{remedy}"
