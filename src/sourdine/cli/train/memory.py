"""`sourdine train memory`: what training takes in memory, measured case by case."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.cli.train.options import need_torch
from sourdine.core import check

if TYPE_CHECKING:
    from sourdine.learning.memory.lines import Fit, Jump
    from sourdine.learning.memory.table import MeasuredMemory

_OWNER = "train memory"


def memory(
    *,
    hidden: Annotated[str, typer.Option("--hidden", help="Hidden units of the perceptron.")] = "512",
    batch: Annotated[
        str, typer.Option("--batch-size", "-b", help="Batches: beside powers of two, to see jumps.")
    ] = "4,8,15,16,17,31,32,33",
    reduce: Annotated[str, typer.Option("--reduce", help="What images are reduced by.")] = "4",
    side: Annotated[int, typer.Option("--side", help="Pixels of a whole image, in height and width.")] = 224,
    depth: Annotated[int, typer.Option("--depth", help="Layers of VGG: 13 or 16.")] = 16,
    classes: Annotated[int, typer.Option("--classes", help="How many classes there are.")] = 102,
    optimizer: Annotated[
        str, typer.Option("--optimizer", help="sgd, momentum, or adam, which keeps two copies.")
    ] = "adam",
    repeats: Annotated[int, typer.Option("--repeats", help="Processes for each case.")] = 1,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The CSV file. Cases that are in it are not measured again."),
    ] = Path("memory.csv"),
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with charts here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure what a step of training takes in memory, with and without privacy.

    A perceptron behind frozen VGG convolutions is trained for one step on random images: bytes of tensors
    after the model, the batch, the backward pass and the step, the most at once, and the process's own
    peak. Every case has a fresh process. Nothing private is read and nothing is spent.

    Example: sourdine train memory --hidden 128,512 --batch-size 16,32,64 --reduce 1,2 --html memory.html
    """
    need_torch()
    from sourdine.learning.memory.lines import fits, jumps
    from sourdine.learning.memory.table import MeasurementFile, grid, measure_all

    cases = grid(
        _numbers("hidden", hidden),
        _numbers("batch-size", batch),
        _numbers("reduce", reduce),
        side=side,
        depth=depth,
        classes=classes,
        optimizer=optimizer,
    )
    show.check_place(output)
    show.check_page(html)
    rows = MeasurementFile(output)
    measure_all(cases, rows, repeats=repeats, bar=lambda some: show.progress("measuring", some))
    measurements = rows.of(cases)
    fitted = fits(measurements)
    steps = jumps(fitted)
    if html is not None:
        from sourdine.report.pages.training import memory_page

        memory_page(measurements, fitted, steps).write(html)
    if as_json:
        show.document(_plain(measurements, fitted, steps))
    else:
        _print(fitted, steps, output)


def _numbers(name: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= 9 for part in parts):
        raise check.fail(_OWNER, name, "be whole numbers separated by commas", text, "Write 16,32,64.")
    return [int(part) for part in parts]


def _plain(
    rows: "Sequence[MeasuredMemory]", fitted: "Sequence[Fit]", jumps: "Sequence[Jump]"
) -> dict[str, object]:
    """All of it for machines."""
    from sourdine.learning.memory.table import COLUMNS, cells

    return {
        "cases": [dict(zip(COLUMNS, cells(row), strict=True)) for row in rows],
        "lines": [
            {
                **_like(fit),
                "fixed": fit.line.fixed,
                "each": fit.line.each,
                "worst": fit.worst,
            }
            for fit in fitted
        ],
        "jumps": [
            {**_like(jump), "before": jump.before, "after": jump.after, "extra": jump.extra} for jump in jumps
        ],
    }


def _like(fit: "Fit | Jump") -> dict[str, object]:
    case = fit.like
    return {
        "hidden": case.hidden,
        "reduce": case.reduce,
        "private": case.private,
        "quantity": fit.quantity,
    }


def _print(fitted: "Sequence[Fit]", jumps: "Sequence[Jump]", out: Path) -> None:
    columns = ("hidden", "reduce", "private", "bytes of", "constant, MB", "an example, MB", "off by, %")
    show.table(
        columns,
        (
            (
                f"{fit.like.hidden:,}",
                str(fit.like.reduce),
                "yes" if fit.like.private else "no",
                fit.quantity,
                f"{fit.line.fixed / 1e6:,.1f}",
                f"{fit.line.each / 1e6:,.4f}",
                f"{100 * fit.worst:.2g}" if len(fit.points) > 2 else "",
            )
            for fit in fitted
        ),
        numbers=(columns[0], columns[1], *columns[4:]),
    )
    for what in ("tensors", "the process"):
        if some := [jump for jump in jumps if jump.quantity.startswith(what)]:
            show.say(told_jump(some, what))
    show.line(f"Every case is in {out}.")


def told_jump(jumps: "Sequence[Jump]", what: str) -> str:
    """The largest of some jumps, in a sentence."""
    worst = max(jumps, key=lambda jump: abs(jump.share))
    if worst.extra == 0:
        return f"At powers of two there is no jump of {what}."
    return (
        f"At powers of two, the largest jump of {what} is {worst.extra / 1e6:,.3g} MB "
        f"({100 * worst.share:.2g} %), from a batch of {worst.before} to one of {worst.after}."
    )
