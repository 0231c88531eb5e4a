"""`sourdine budget curves`: one page that shows how each choice moves epsilon."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli import show
from sourdine.cli.run import AsJson, Batch, Epochs, Size, read_delta, read_noise, read_training


def curves(
    *,
    size: Size = 60_000,
    batch: Batch = 64,
    noise: Annotated[str, typer.Option("--noise", "-n", help="Noise, in clipping norms.")] = "1.0",
    epochs: Epochs = 15,
    delta: Annotated[str, typer.Option("--delta", "-d", help="The delta of the guarantee.")] = "1e-5",
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the page goes.")] = Path(
        "budget.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Draw epsilon against order, size, batch, noise, epochs and delta, around one run, on one page.

    The page holds everything it needs and loads nothing.

    Example: sourdine budget curves -s 60000 -b 64 -n 1.0 -e 15 -o budget.html
    """
    from sourdine.report.budget import curves_page

    level, share = read_noise("curves", noise), read_delta("curves", delta)
    training = read_training("curves", size=size, batch=batch, noise=level, epochs=epochs, sampler="poisson")
    show.check_page(output)
    page = curves_page(training, share, show.progress)
    show.keep(page.html(), output)
    figures = [figure.title for section in page.sections for figure in section.figures]
    if as_json:
        show.document({"page": str(output), "figures": figures})
        return
    show.line(f"{output} shows:")
    for title in figures:
        show.say(title, "- ")
