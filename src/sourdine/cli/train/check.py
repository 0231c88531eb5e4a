"""`sourdine train check`: exactly which examples count for nothing, for the holder of the data alone."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.cli.train.options import Classes, need_torch
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

NOTICE = "NOT PRIVATE"
_SHOWN = 20  # names on the terminal; JSON has all


def check(
    data: Annotated[Path, typer.Argument(help="A folder of IDX files, of CIFAR-10 or of images.")],
    *,
    classes: Classes = 10,
    as_json: AsJson = False,
) -> None:
    """Count exactly which examples count for nothing. NOT PRIVATE: never publish what it prints.

    These are images that cannot be read, and labels that name no class. Training says nothing of them, since
    that would tell of somebody's image, and what it costs is the same with and without them. This command is
    for whoever holds the data, to find files that were damaged on the way. It spends nothing. Settings that
    are changed after reading it are outside the guarantee.

    Example: sourdine train check flowers
    """
    need_torch()
    from sourdine.frames.files import ENDINGS
    from sourdine.learning.data.files import read_data

    if data.is_file() and data.suffix.lower() in ENDINGS:
        raise InvalidParameter(
            f"{data} is a table, which 'sourdine check' looks at. Name a specification of it there."
        )
    listed: list[Sequence[tuple[Path, int]]] = []

    def progress(images: Sequence[tuple[Path, int]]) -> Iterable[tuple[Path, int]]:
        listed.append(images)
        return show.progress("reading images", images)

    train = read_data(data, classes=classes, side=4, progress=progress).train
    places = [place for place, target in enumerate(train.targets.tolist()) if target < 0]
    files = [str(listed[0][place][0]) for place in places] if listed else []
    if as_json:
        show.document(
            {"notice": NOTICE, "examples": len(train), "count_for_nothing": len(places), "files": files}
        )
        return
    sentence = f"{NOTICE}: of {counted(len(train), 'example')} to learn from, {len(places):,} "
    show.line(
        sentence + ("counts" if len(places) == 1 else "count") + " for nothing" + (":" if files else ".")
    )
    for name in files[:_SHOWN]:
        show.line(f"{NOTICE}: {show.one_line(name)}")
    if len(files) > _SHOWN:
        show.line(f"{NOTICE}: and {len(files) - _SHOWN:,} more; --json names all.")
