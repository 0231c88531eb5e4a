"""What a sweep found, as rows: a mean over the repeats of each setting, and accuracies epoch by epoch."""

import csv
import io
import statistics
from collections.abc import Mapping, Sequence

from sourdine.learning.sweep import Setting, Sweep
from sourdine.learning.sweep_journal import Finished

Row = dict[str, str | int | float | None]


def means(sweep: Sweep, runs: Sequence[Finished]) -> list[Row]:
    """A row for each setting that was run; the names of the first five columns are the source's.

    Accuracies are shares. `accuracy_std` is their deviation over the repeats, empty for a single one.
    """
    rows = []
    for place, (setting, planned) in enumerate(zip(sweep.settings, sweep.plans, strict=True)):
        found = [each for each in runs if each.setting == place]
        if not found:
            continue
        accuracies = [each.accuracy for each in found]
        rows.append(
            {
                "learning_rate": setting.learning_rate,
                "batch_size": setting.batch,
                "n_epochs": setting.epochs,
                "accuracy": statistics.mean(accuracies),
                "n_times_for_avg": len(found),
                "accuracy_std": statistics.stdev(accuracies) if len(found) > 1 else None,
                "epsilon": planned.epsilon.upper,
                "delta": sweep.delta,
                "noise": planned.noise,
                "clip": setting.clip,
                "hidden_units": setting.hidden,
                "sampler": str(sweep.sampler),
                "steps": planned.steps,
                "seconds": statistics.mean(each.seconds for each in found),
                "epsilon_asked": setting.epsilon,
            }
        )
    return rows


def epochs(sweep: Sweep, runs: Sequence[Finished]) -> list[Row]:
    """A row for each epoch of each run."""
    return [
        _named(sweep.settings[run.setting])
        | {
            "epsilon": sweep.plans[run.setting].epsilon.upper,
            "noise": sweep.plans[run.setting].noise,
            "epsilon_asked": sweep.settings[run.setting].epsilon,
            "repeat": run.repeat + 1,
            "epoch": epoch,
            "accuracy": accuracy,
        }
        for run in runs
        for epoch, accuracy in enumerate(run.history, start=1)
    ]


def as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as CSV, the names of the columns first.

    >>> as_csv([{"a": 1, "b": None}])
    'a,b\\r\\n1,\\r\\n'
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _named(setting: Setting) -> Row:
    return {
        "learning_rate": setting.learning_rate,
        "batch_size": setting.batch,
        "n_epochs": setting.epochs,
        "clip": setting.clip,
        "hidden_units": setting.hidden,
    }
