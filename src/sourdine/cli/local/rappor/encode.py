"""`sourdine local rappor encode`: words in, reports out, as the devices of many people would make them."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.local.encode import read_secret
from sourdine.cli.local.rappor.options import (
    NAME,
    NoiseOptions,
    costs,
    oracle_of,
    read_question,
    say_costs,
    write_question,
)
from sourdine.cli.shared import show
from sourdine.cli.shared.option_groups import with_groups
from sourdine.cli.shared.parse import AsJson, lines_of
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.local.question import Question
    from sourdine.local.rappor.responses import Rows

_CHUNK = 1 << 15


@with_groups
def encode(
    params: Annotated[
        Path,
        typer.Argument(help="The parameters: a specification (.json), or Google's params (.csv)."),
    ],
    answers: Annotated[Path, typer.Argument(help="One word per line; '-' for standard input.")],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The reports: lines, or Google's for a name in .csv.")
    ],
    secret: Annotated[
        Path | None,
        typer.Option(help="A file of at least 16 secret bytes: all answers are of this one device."),
    ] = None,
    noise: NoiseOptions,
    name: Annotated[str, typer.Option(help="What is asked, for a new specification.")] = NAME,
    as_json: AsJson = False,
) -> None:
    """Make a private report of every word. Run it where the words are: only reports should travel.

    Without --secret every line is a device of its own. With noise given, PARAMS is written anew;
    it must not exist yet.

    Examples: sourdine local rappor encode pages.json words.txt -o reports.txt --epsilon 1
    --epsilon-infinity 4 · sourdine local rappor encode params.csv words.txt -o reports.csv --f 0.5 --p 0.5
    --q 0.75 · sourdine local rappor encode pages.json - -o report.txt --secret device.key
    """
    from sourdine.local.question import Question

    show.check_place(output)
    if not noise.any and not params.exists():
        raise InvalidParameter(
            f"There is no file {params} with parameters. Check the path, or say how much noise to add, and "
            "it is written: --epsilon 1 --epsilon-infinity 4, or --f, --p and --q."
        )
    question = Question(name=name, oracle=noise.oracle()) if noise.any else read_question(params)
    if noise.any:
        show.check_place(params)
        show.refuse_existing([params], "Choose another place, or leave the noise out to use its parameters.")
    show.refuse_existing([output], "Choose another place with -o.")
    words = lines_of(answers)
    rows = _of_one(question, words, secret) if secret else _of_many(question, words)
    if noise.any:
        write_question(params, question)
    _write(output, question, rows, one_device=secret is not None)
    oracle = oracle_of(question)
    if as_json:
        document = {"reports": str(output), "count": len(rows), "parameters": str(params)}
        show.document({**document, "specification": question.fingerprint, **costs(oracle)})
        return
    show.line(f"Wrote {counted(len(rows), 'report')} to {output}.")
    if noise.any:
        show.line(f"Wrote the parameters to {params}.")
    show.say(
        f"{say_costs(oracle)} A device that reports on several words pays for each."
        + (
            " Every line was taken for a new device. To ask the same people again give --secret, the one of "
            "each device: without it a new report on the same word adds its epsilon without a limit."
            if secret is None
            else ""
        )
    )
    spec, reports = (quote(show.one_line(str(path))) for path in (params, output))
    show.line(f"Next: sourdine local rappor decode {spec} {reports} --candidates candidates.txt")


def _of_many(question: "Question", words: list[str]) -> "Rows":
    """A report of a new device for each word."""
    import numpy as np

    from sourdine.local.rappor.rappor import Filters

    numbers: dict[str, int] = {}
    codes = np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64)
    filters = Filters.of(oracle_of(question), list(numbers))
    starts = range(0, len(codes), _CHUNK)
    parts = [filters.reports(codes[i : i + _CHUNK]) for i in show.progress("making reports", starts)]
    return np.concatenate(parts)


def _of_one(question: "Question", words: list[str], secret: Path) -> "Rows":
    """The reports of one device, which answers equal words from one permanent response."""
    import numpy as np

    from sourdine.local.rappor import Device

    device = Device(oracle=oracle_of(question), secret=read_secret(secret), purpose=question.name)
    return np.stack([device.report(word) for word in show.progress("making reports", words)])


def _write(path: Path, question: "Question", rows: "Rows", *, one_device: bool) -> None:
    from sourdine.local.lines import written
    from sourdine.local.rappor.files import write_reports

    if path.suffix.lower() == ".csv":
        clients = [str(1 if one_device else i) for i in range(1, len(rows) + 1)]
        write_reports(path, oracle_of(question), clients, rows)
    else:
        disk.write_whole(path, written(question.fingerprint, rows))
