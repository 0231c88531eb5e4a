"""`sourdine local regress`: whom an answer through coins is true of, by what else is known of people."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sourdine.anonymity.records import Coded
    from sourdine.local import AnswerRegression, Survey

DESIGNS = ("two-coins", "warner")
_WORDS = {"yes": 1.0, "true": 1.0, "1": 1.0, "no": 0.0, "false": 0.0, "0": 0.0}
_MOST_LABELS = 50
_COLUMNS = ("covariate", "coefficient", "standard error", "interval", "odds ratio")


def regress(
    table: Annotated[Path, typer.Argument(help="A .csv, .tsv, .json, .ndjson or .parquet file.")],
    *,
    answer: Annotated[str, typer.Option(help="The column of what people said: yes or no, 1 or 0.")],
    on: Annotated[
        list[str] | None, typer.Option(help="Columns of covariates, separated by commas. Without: the share.")
    ] = None,
    design: Annotated[
        str,
        typer.Option(help="two-coins (also forced response and the unrelated question), or warner."),
    ] = "two-coins",
    truth: Annotated[str, typer.Option(help="How often the question itself is answered, and truly.")] = "1/2",
    yes: Annotated[
        str, typer.Option(help="How often the second coin, or the unrelated question, says yes.")
    ] = "1/2",
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Logistic regression of a randomized answer, with standard errors (Blair, Imai, Zhou 2015).

    Answers stay as protected as they were made. Covariates are used as they are: they must be public, or made
    private by each person. A column of texts becomes a covariate for each text but the first.

    Examples: sourdine local regress survey.csv --answer said --on age,place ·
    sourdine local regress survey.csv --answer said --on age --design warner --truth 0.7
    """
    import numpy as np

    from sourdine.anonymity.records import Missing, Records
    from sourdine.local import regress as fit

    survey = _survey(design, truth, yes)
    columns = [name.strip() for text in on or () for name in text.split(",") if name.strip()]
    records = Records.read(table, quasi=[answer, *columns], missing=Missing.DROP)
    answers = _answers(records.quasi[0])
    pairs = [pair for column in records.quasi[1:] for pair in _covariates(column)]
    rows = np.stack([each for _, each in pairs], axis=1) if pairs else np.zeros((len(answers), 0))
    names = [name for name, _ in pairs]
    regression = fit(survey, answers, rows, names=names, counts=records.counts, confidence=confidence)
    yeses = round(float(answers @ records.counts))
    whole = survey.estimate(yeses, records.size, confidence, population=True)
    share = float(whole.value), float(whole.lower), float(whole.upper)
    if as_json:
        show.document(_document(regression, survey, records.dropped, share))
    else:
        _print(regression, survey, records.dropped, share)


def _survey(design: str, truth: str, yes: str) -> "Survey":
    from sourdine.local import Survey
    from sourdine.mechanisms import Warner

    owner = "local regress"
    first = number(owner, "truth", truth, 0, 1)
    if design == "warner":
        if first <= Fraction(1, 2):
            raise check.fail(owner, "truth", "be above 1/2 for Warner's design", truth)
        return Survey.of(Warner(truth=first))
    if design != "two-coins":
        raise check.fail(owner, "design", f"be one of {', '.join(DESIGNS)}", design)
    return Survey.two_coins(float(first), float(number(owner, "yes", yes, 0, 1)))


def _answers(column: "Coded") -> "NDArray[np.float64]":
    import numpy as np

    meaning = [_WORDS.get((label or "").strip().lower()) for label in column.labels]
    if any(value is None for value in meaning):
        raise InvalidParameter(
            f"The column '{column.name}' has other answers than yes and no, true and false, or 1 and 0. "
            "Write them so, or name another column with --answer."
        )
    return np.array(meaning, float)[column.codes]


def _covariates(column: "Coded") -> "list[tuple[str, NDArray[np.float64]]]":
    """A number as it is, or a 1 for each text but the first."""
    if column.numbers is not None:
        return [(column.name, column.numbers[column.codes])]
    if len(column.labels) > _MOST_LABELS:
        raise InvalidParameter(
            f"The column '{column.name}' has more than {_MOST_LABELS} different texts, too many for a "
            "coefficient each. Group them first, or leave it out."
        )
    return [
        (f"{column.name} = {label}", (column.codes == place).astype(float))
        for place, label in enumerate(column.labels)
        if place
    ]


def _document(
    regression: "AnswerRegression", survey: "Survey", dropped: int, share: tuple[float, float, float]
) -> dict[str, object]:
    from sourdine.cli.shared.parse import finite

    return {
        "reports": regression.reports,
        "dropped": dropped,
        "epsilon": finite(survey.epsilon),
        "confidence": regression.confidence,
        "settled": regression.settled,
        "log_likelihood": regression.log_likelihood,
        "share": dict(zip(("value", "lower", "upper"), share, strict=True)),
        "coefficients": [
            {"covariate": name, "value": value, "standard_error": error, "lower": low, "upper": high}
            for name, value, error, low, high in zip(
                regression.names,
                regression.coefficients.tolist(),
                regression.errors.tolist(),
                regression.lower.tolist(),
                regression.upper.tolist(),
                strict=True,
            )
        ],
    }


def _print(
    regression: "AnswerRegression", survey: "Survey", dropped: int, share: tuple[float, float, float]
) -> None:
    import numpy as np

    with np.errstate(over="ignore"):
        odds = np.exp(regression.coefficients)
    rows = [
        (
            name,
            f"{regression.coefficients[i]:.4g}",
            f"{regression.errors[i]:.3g}",
            f"{regression.lower[i]:.3g} to {regression.upper[i]:.3g}",
            f"{odds[i]:.3g}" if i else "",
        )
        for i, name in enumerate(regression.names)
    ]
    show.table(_COLUMNS, rows, numbers=_COLUMNS[1:])
    level = f"{plain(100 * regression.confidence)} %"
    cost = f"epsilon {survey.epsilon:.4g}" if survey.epsilon < float("inf") else "NO finite epsilon"
    show.say(
        f"{counted(regression.reports, 'answer')}, each of which reveals {cost}. It is true of "
        f"{share[0]:.1%} ({level} interval {share[1]:.1%} to {share[2]:.1%}) in the population they were "
        f"drawn from. Coefficients are in logits, with {level} intervals, each by itself. Covariates are "
        "used as they are, and nothing here protects them."
        + (f" {counted(dropped, 'record')} lacked a value and were left out." if dropped else "")
    )
    if not regression.settled:
        show.warn(
            "The likelihood has no maximum at finite coefficients: these answers are beyond what the design "
            "explains. Errors mean nothing. Check the design, or take covariates out."
        )
