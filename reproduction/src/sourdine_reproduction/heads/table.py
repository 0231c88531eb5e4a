"""A table like the published one, with its settings, on features at hand; beside each row, better heads."""

from dataclasses import replace

from sourdine.accounting import Training, cost_of_training
from sourdine.report.view import Cell, Section, TextTable
from sourdine_reproduction.budget.flowers import DELTA, ROWS, SIZE, PublishedRow
from sourdine_reproduction.heads.setting import HeadExamples, our_head, source_head, squares
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

_SHORTER = 25  # a quick run has so many times fewer epochs
Setting = tuple[int, float, float, float]


def reproduce(examples: HeadExamples, settings: Settings) -> ExperimentPart:
    """All rows; those that differ in their epochs alone are one run, looked at on the way."""
    few = replace(examples, train=examples.train.first(SIZE))
    size = len(few.train)
    curves = _curves(few, settings)
    rows: list[tuple[Cell, ...]] = []
    ahead = {"linear": 0, "least squares": 0}
    for row in settings.watch("heads at the same epsilons", _rows(settings)):
        epochs = _epochs(row, settings)
        run = Training(size=size, batch_size=row.batch, noise_multiplier=row.noise, epochs=epochs)
        epsilon = cost_of_training(run, DELTA).epsilon
        reached = curves[_setting(row)][epochs - 1]
        better = our_head(few, epsilon=epsilon.upper, delta=DELTA).accuracy or 0.0
        solved = squares(few, epsilon=epsilon.upper, delta=DELTA).accuracy or 0.0
        ahead["linear"] += better > reached
        ahead["least squares"] += solved > reached
        shown = [round(100 * each, 1) for each in (reached, better, solved)]
        rows.append((row.batch, row.noise, row.clip, row.rate, epochs, epsilon, *shown))
    table = TextTable(
        name="table",
        title=f"On features at hand: {size:,} images, δ = 1e-4, accuracy in %",
        columns=(
            "batch",
            "noise",
            "clip",
            "learning rate",
            "epochs",
            "ε, certified",
            "perceptron of 512 units",
            "linear, large batches, same ε",
            "least squares, same ε",
        ),
        rows=tuple(rows),
        note="Batches are Poisson samples, so the ε hold. Rows that differ in their epochs alone are one "
        "run. Each model has its ε for itself: whoever sees several has seen more.",
    )
    quick = (
        (
            f"QUICK: few images, a few of the rows and 1/{_SHORTER} of the epochs. These numbers say nothing "
            "about the published ones. Leave --quick out to compare.",
        )
        if settings.quick
        else ()
    )
    verdicts = quick or (_compared(rows, ahead, examples.flowers),)
    section = Section(
        title="The same settings on features at hand", paragraphs=(*verdicts, examples.words), tables=(table,)
    )
    return ExperimentPart(untested() if settings.quick or not examples.flowers else _judged(rows), section)


def _curves(examples: HeadExamples, settings: Settings) -> dict[Setting, list[float]]:
    """The accuracy after each epoch, for the settings of the table."""
    longest: dict[Setting, int] = {}
    for row in _rows(settings):
        longest[_setting(row)] = max(longest.get(_setting(row), 0), _epochs(row, settings))
    curves = {}
    for setting, epochs in settings.watch("the table's runs", list(longest.items())):
        batch, noise, clip, rate = setting
        run = source_head(
            examples, batch=batch, noise=noise, clip=clip, rate=rate, epochs=epochs, delta=DELTA
        )
        curves[setting] = [each.accuracy or 0.0 for each in run.history]
    return curves


def _rows(settings: Settings) -> tuple[PublishedRow, ...]:
    return ROWS[::4] if settings.quick else ROWS


def _setting(row: PublishedRow) -> Setting:
    return row.batch, row.noise, row.clip, row.rate


def _epochs(row: PublishedRow, settings: Settings) -> int:
    return max(1, row.epochs // _SHORTER) if settings.quick else row.epochs


def _compared(rows: list[tuple[Cell, ...]], ahead: dict[str, int], flowers: bool) -> str:
    """What other heads reach at the same epsilon."""
    least = min(float(str(row[7])) - float(str(row[6])) for row in rows)
    most = max(float(str(row[7])) - float(str(row[6])) for row in rows)
    other = "" if flowers else " These are not flowers: the published accuracies are not tested by them."
    return (
        "On these images a linear head with large batches is ahead of the published settings in "
        f"{ahead['linear']} of {len(rows)} rows, by {least:.1f} to {most:.1f} points at the same ε; least "
        f"squares is ahead in {ahead['least squares']}.{other}"
    )


_NO_FLOWERS = (
    "The flowers and the weights of VGG16 are not at hand. What the same settings learn on features of other "
    "images is told, and says nothing about flowers."
)
_NEAR = 3.0  # points of accuracy


def untested() -> tuple[ClaimVerdict, ...]:
    """What is said of the accuracies where the flowers are not at hand, or nothing was trained."""
    return tuple(
        judge(f"thesis.flowers.{name}", finding="nothing", standing=Standing.UNTESTED, why=_NO_FLOWERS)
        for name in ("plain", "reach", "accuracy")
    )


def _judged(rows: list[tuple[Cell, ...]]) -> tuple[ClaimVerdict, ...]:
    """The accuracies of the flowers themselves, at the published settings and by other heads."""
    plain, *_ = untested()
    reached = [float(str(row[6])) for row in rows]
    away = [abs(ours - row.accuracy) for ours, row in zip(reached, ROWS, strict=True)]
    best = max(float(str(cell)) for row in rows for cell in row[7:])
    return (
        replace(
            plain,
            why="Nothing is trained without privacy at the settings of the source, which it does not print.",
        ),
        judge(
            "thesis.flowers.reach",
            finding=f"{best:.1f} % by another head, at the largest ε of the table or below",
            standing=Standing.OTHERWISE if best > 55 + 2 * _NEAR else Standing.REPRODUCED,
        ),
        judge(
            "thesis.flowers.accuracy",
            finding=f"{min(reached):.1f} to {max(reached):.1f} %, off by {max(away):.1f} points at most",
            standing=Standing.REPRODUCED if max(away) <= _NEAR else Standing.OTHERWISE,
            why="Batches are Poisson samples here.",
        ),
    )
