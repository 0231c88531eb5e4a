"""`sourdine local utility`: what a classifier still learns from a cleaned table."""

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, SeedNumber, bits_of, number
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from enum import StrEnum

    from sourdine.local.utility import Utility

_OWNER = "local utility"
_LEAST, _MOST = Fraction(1, 1 << 16), 1 << 20


def utility(
    table: Annotated[Path, typer.Argument(help="A table of public or made-up rows.")],
    *,
    label: Annotated[str, typer.Option(help="The column to learn: a flag or a category.")],
    spec: Annotated[
        Path | None,
        typer.Option("--spec", help="What is declared of its columns. Without it: TABLE.toml, here."),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="For each person: a list such as 1,2,4, or a range such as .1:10 or .1:10:20."),
    ] = None,
    each: Annotated[
        str | None, typer.Option(help="Instead: that of every column, as a list or a range.")
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", "-m", help="A list of naive-bayes, and with scikit-learn logistic and tree."),
    ] = "naive-bayes",
    method: Annotated[str, typer.Option(help="A list of noises of numbers.")] = "laplace,staircase,unbiased",
    test: Annotated[str, typer.Option(help="The share of the rows to test by, or a second table.")] = "0.2",
    tested: Annotated[
        str, typer.Option(help="What rows test: a list of untouched, cleaned-features, cleaned.")
    ] = "untouched",
    repeats: Annotated[int, typer.Option(help="How often each cleaning is done.")] = 30,
    seed: SeedNumber = 0,
    html: Annotated[Path | None, typer.Option("--html", help="A page with curves.")] = None,
    as_json: AsJson = False,
) -> None:
    """Clean the rows of a table, learn from them, and test on untouched ones. NOT PRIVATE: for public rows.

    It tells what a cleaned table is still good for, before other people's rows are cleaned: accuracy and F1
    over a range of epsilon, with several noises and models, many cleanings each, beside what is reached
    without noise, and what each cleaning really costs a person. The scores are exact. A range has 1, 2 and 5
    of every power of ten, or as many points as are said. The split is that of scikit-learn for the seed.

    Examples: sourdine local utility patients.csv --label ill --epsilon .1:10 --html utility.html ·
    sourdine local utility patients.csv --label ill --each 0.5,1,2 --model naive-bayes,logistic --test new.csv
    """
    from sourdine.local.cleaner import Method
    from sourdine.local.cleaner.specification import CleaningSpecification, parsed
    from sourdine.local.utility import JudgedOn, LearningModel, measure_utility
    from sourdine.report.pages.anonymity import utility_page
    from sourdine.tables.specification import check_filled

    show.check_page(html)
    place = Path(f"{table.stem}.toml") if spec is None else spec
    document = parsed(place)
    check_filled({name: document[name] for name in ("columns", "clean") if name in document}, place)
    measured = measure_utility(
        _file(table),
        CleaningSpecification.read(document),
        label=label,
        epsilon=None if epsilon is None else _epsilons("epsilon", epsilon),
        each=None if each is None else _epsilons("each", each),
        models=_members("model", model, LearningModel),
        methods=_members("method", method, Method),
        test=_test(test),
        seed=check.integer(_OWNER, "seed", seed, 0, (1 << 32) - 1),
        repeats=repeats,
        tested=_members("tested", tested, JudgedOn),
        bits=bits_of(_OWNER, seed),
        watch=partial(show.progress, "cleaning and learning"),
    )
    if html is not None:
        show.keep(utility_page(table.name, measured).html(), html)
    if as_json:
        show.document(_plain(measured))
    else:
        _print(measured, html)


def _file(path: Path) -> Path:
    if not path.is_file():
        raise InvalidParameter(f"The file {path} does not exist. Check the path.")
    return path


def _test(text: str) -> float | Path:
    """A share, or a table."""
    from sourdine.core.format import parse

    share = parse(text)
    return _file(Path(text)) if share is None else float(share)


def _epsilons(name: str, text: str) -> list[Fraction]:
    """The values of a list, in which ranges may stand."""
    from sourdine.local.utility.ranges import MOST_POINTS, epsilon_range

    epsilons: list[Fraction] = []
    for part in text.split(","):
        words = [each.strip() for each in part.split(":")]
        ends = [number(_OWNER, name, each, _LEAST, _MOST) for each in words[:2]]
        count = None
        if len(words) > 2:
            points = number(_OWNER, f"points of {name}", ":".join(words[2:]), 2, MOST_POINTS)
            whole = int(points) if points.denominator == 1 else points
            count = check.integer(_OWNER, f"points of {name}", whole, 2, MOST_POINTS)
        epsilons += epsilon_range(ends[0], ends[1], count) if len(words) > 1 else ends
    return sorted(dict.fromkeys(epsilons))


E = TypeVar("E", bound="StrEnum")


def _members(name: str, text: str, kind: type[E]) -> list[E]:
    choices = {str(each): each for each in kind}
    listed = [part.strip() for part in text.split(",")]
    for part in listed:
        if part not in choices:
            raise check.fail(_OWNER, name, f"list some of {', '.join(choices)}", part)
    return [choices[part] for part in dict.fromkeys(listed)]


def _print(measured: "Utility", html: Path | None) -> None:
    from sourdine.local.utility.measure import NOTICE
    from sourdine.report.pages.anonymity import (
        describe_utility_price,
        reading_points,
        utility_table,
        what_words,
    )

    table = utility_table(measured)
    show.say(f"{NOTICE}.")
    show.say(what_words(measured))
    show.table(table.columns, table.shown(), (*table.numbers, *table.columns[:2], *table.columns[-2:]))
    show.say(f"{table.note} {describe_utility_price(measured)}")
    show.say(reading_points(measured)[2])
    if html is not None:
        show.line(f"  {html}")


def _plain(measured: "Utility") -> dict[str, object]:
    from sourdine.local.utility.measure import NOTICE

    return {
        "notice": NOTICE,
        "label": measured.label,
        "labels": list(measured.labels),
        "unit": measured.unit,
        "asked_of": "column" if measured.by_column else measured.unit,
        "train": measured.train,
        "test": measured.test,
        "repeats": measured.repeats,
        "without_noise": {
            str(model): {"accuracy": accuracy, "f1": f1}
            for model, (accuracy, f1) in measured.without_noise.items()
        },
        "commonest_label": {"accuracy": measured.commonest[0], "f1": measured.commonest[1]},
        "points": [
            {
                "asked": str(point.target),
                "price": str(point.price),
                "epsilon": float(point.price),
                "method": str(point.method) if measured.numbers else None,
                "model": str(point.model),
                "tested": {
                    str(kind): {
                        "accuracy": float(scores.accuracy.mean()),
                        "accuracy_deviation": float(scores.accuracy.std(ddof=1)),
                        "f1": float(scores.f1.mean()),
                        "f1_deviation": float(scores.f1.std(ddof=1)),
                    }
                    for kind, scores in point.scores.items()
                },
            }
            for point in measured.points
        ],
    }
