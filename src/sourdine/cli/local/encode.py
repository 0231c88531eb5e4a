"""`sourdine local encode`: answers in, reports out, as the devices of many people would make them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, lines_of, read_json
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable
from sourdine.core.format import counted, shorten_up

if TYPE_CHECKING:
    from sourdine.local.question import Question

_CHUNK = 1 << 15
SpecFile = Annotated[Path, typer.Argument(help="The specification that 'sourdine local spec' wrote.")]


def encode(
    spec: SpecFile,
    answers: Annotated[Path, typer.Argument(help="One answer per line; '-' for standard input.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The reports, one per line.")],
    secret: Annotated[
        Path | None,
        typer.Option(help="A file of at least 16 secret bytes: the same answer gets the same report again."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a private report of every answer. Run it where the answers are: only reports should travel.

    With --secret, which belongs to one device, repeated answers to the question cost once.

    Examples: sourdine local encode coffee.json answers.txt -o reports.txt ·
    sourdine local encode coffee.json - -o report.txt --secret device.key
    """
    import numpy as np

    from sourdine.local.lines import written
    from sourdine.local.memoization import Memo
    from sourdine.local.words import WordMemo, WordTree

    question = read_question(spec)
    show.check_place(output)
    values = question.values(lines_of(answers))
    starts = range(0, len(values), _CHUNK)
    kind = WordMemo if isinstance(question.oracle, WordTree) else Memo
    memo = None if secret is None else kind(question, read_secret(secret))
    parts = []
    for start in show.progress("making reports", starts):
        part = values[start : start + _CHUNK]
        if memo is None:
            rows = question.oracle.pack(question.oracle.sample(part))
        else:
            rows = np.concatenate([memo.row(value) for value in part])
        parts.append(written(question.fingerprint, rows))
    try:
        disk.write_whole(output, b"".join(parts), over=False)
    except FileExistsError:
        raise InvalidParameter(
            f"{output} exists already and is not written over. Choose another place with -o."
        ) from None
    if as_json:
        show.document({"reports": str(output), "count": len(values), "specification": question.fingerprint})
        return
    show.line(f"Wrote {counted(len(values), 'report')} to {output}.")
    level = shorten_up(float(question.oracle.spend.loss().epsilon), 6)
    show.say(
        f"Each reveals at most epsilon {level} about its answer. "
        + (
            f"Every line was taken for another person. Whoever reports again reveals {level} more each "
            "time, unless a secret of their device makes equal answers give equal reports (--secret)."
            if memo is None
            else "All lines were taken for answers of the one device with this secret: its total is "
            f"{level} times the number of different answers it ever gives, given when they were the "
            "same. Do not use one secret for several people: estimates and their intervals would be wrong."
        )
    )


def read_question(spec: Path) -> "Question":
    """The question of a specification in a file."""
    from sourdine.local.question import Question
    from sourdine.local.rappor.rappor import BloomOracle

    question = Question.from_json(read_json(spec))
    if isinstance(question.oracle, BloomOracle):
        raise InvalidParameter(
            f"The specification {spec} asks for words by RAPPOR. "
            "Use 'sourdine local rappor encode' and 'sourdine local rappor decode' for it."
        )
    return question


def read_secret(path: Path) -> bytes:
    """The bytes of a device's secret."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise InvalidParameter(
            f"{unreadable(path, problem, 'secret')} Make one with: head -c 32 /dev/urandom > device.key"
        ) from None
