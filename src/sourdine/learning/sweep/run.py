"""A sweep carried out: paid once, run by run, each kept on disk, so that one that was killed goes on.

A run that was killed leaves no line and is begun anew with other noise. That costs nothing more: nothing of
a run is told to anybody before its line is on the disk. What was found is a mean over the repeats of each
setting.
"""

import csv
import io
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.ledger import opened
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.core.random.bits import SYSTEM
from sourdine.core.serialization import decoded, encoded
from sourdine.learning.pricing import PricedPlan
from sourdine.learning.result import Trained
from sourdine.learning.running.checkpoint import Checkpoint
from sourdine.learning.sweep.settings import Setting, Sweep

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Finished:
    """One run: which setting, which repeat, accuracy on public data at the end and after each epoch."""

    setting: int
    repeat: int
    accuracy: float
    seconds: float
    history: tuple[float, ...]


class Journal:
    """The file of one sweep. Its first line says what the sweep is, each other one tells of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> tuple[dict[str, object], list[Finished]] | None:
        """What the sweep is and which runs are finished; a line that a kill has cut short is dropped."""
        if not self.path.exists():
            return None
        raw = self.path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if not whole:
            return None  # killed before the first line was whole: nothing was begun
        try:
            first, *lines = [json.loads(line) for line in whole.splitlines()]
            if first["format"] != _FORMAT:
                raise ValueError("unknown format")
            done = [decoded(Finished, line) for line in lines]
        except (KeyError, TypeError, ValueError, InvalidParameter) as problem:
            raise InvalidParameter(
                f"The journal {self.path} cannot be read. Move it away to begin anew, which costs anew."
            ) from problem
        if len(whole) < len(raw):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        return {name: value for name, value in first.items() if name != "format"}, done

    def begin(self, what: Mapping[str, object]) -> None:
        """Write what the sweep is; the file is its owner's alone."""
        self.path.unlink(missing_ok=True)  # at most the beginning of a first line
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self._append({"format": _FORMAT, **what})

    def add(self, run: Finished) -> None:
        """A finished run; it is on the disk when this returns."""
        self._append(encoded(run))

    def _append(self, content: Mapping[str, object]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(content, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


Train = Callable[[Setting, PricedPlan], Trained]
_PAID = "paid"
_PARAMETERS = {"batch": "batch_size", "noise": "noise_multiplier"}  # by their names in a journal
_Paid = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Swept:
    """A finished sweep: its runs, the line of the ledger that paid, and how many were finished before."""

    sweep: Sweep
    runs: tuple[Finished, ...]
    line: int | None
    before: int


def run_sweep(
    sweep: Sweep,
    train: Train,
    journal: Path,
    *,
    about: Mapping[str, object],
    ledger: Ledger | Path | str | None = None,
    progress: Callable[[Setting, int], None] | None = None,
) -> Swept:
    """Train every setting as often as stated, and note each run in a journal as soon as it is finished.

    `train` makes a fresh model and fits it with accuracy on public data; it may tell nobody how that goes.
    `about` says what is trained on what, so that a journal is not taken for that of another sweep. The
    ledger is charged for all runs at once, before the first. `progress` is told which run begins.
    """
    file = Journal(journal)
    with opened(ledger) as payer, Checkpoint(journal).lock():
        record = file.load()
        if record is None:
            paid = None if payer is None else _paid(sweep, payer, about)
            file.begin(_what(sweep, about) | {_PAID: paid})
            done: list[Finished] = []
        else:
            description, done = record
            paid = _read_paid(description.pop(_PAID, None))
            _check_same(journal, description, _what(sweep, about))
            _check_paid(journal, paid, payer)
        finished = {(each.setting, each.repeat): each for each in done}
        for repeat in range(sweep.repeats):  # all settings once before any comes again
            for place, (setting, planned) in enumerate(zip(sweep.settings, sweep.plans, strict=True)):
                if (place, repeat) in finished:
                    continue
                if progress is not None:
                    progress(setting, len(finished))
                start = time.perf_counter()
                run = _finished(place, repeat, train(setting, planned), time.perf_counter() - start)
                file.add(run)
                finished[place, repeat] = run
    ordered = tuple(finished[key] for key in sorted(finished))
    return Swept(
        sweep=sweep, runs=ordered, line=None if paid is None else int(paid["number"]), before=len(done)
    )


def _finished(setting: int, repeat: int, trained: Trained, seconds: float) -> Finished:
    accuracies = [each.accuracy for each in trained.history if each.accuracy is not None]
    if not accuracies:
        raise InvalidParameter(
            "A sweep compares settings by their accuracy, and there was nothing public to tell it on. "
            "Name public examples to judge by."
        )
    return Finished(
        setting=setting,
        repeat=repeat,
        accuracy=accuracies[-1],
        seconds=round(seconds, 3),
        history=tuple(accuracies),
    )


def _what(sweep: Sweep, about: Mapping[str, object]) -> dict[str, object]:
    """What the epsilon of a sweep rests on, and what its accuracies are of."""
    return {
        "about": dict(about),
        "settings": [each.to_json() for each in sweep.settings],
        "noise": [each.noise_multiplier for each in sweep.plans],
        "repeats": sweep.repeats,
        "size": sweep.size,
        "delta": sweep.delta,
        "sampler": str(sweep.sampler),
    }


def _paid(sweep: Sweep, ledger: Ledger, about: Mapping[str, object]) -> _Paid:
    """Charge for all runs at once."""
    receipt = ledger.charge(
        *sweep.spends,
        purpose=f"sweep over {len(sweep.settings):,} settings of training, {sweep.repeats:,} times each",
        secure=SYSTEM.secure,
        declared={name: str(value) for name, value in about.items()},
    )
    return {
        "ledger": receipt.ledger,
        "number": str(receipt.number),
        "fingerprint": receipt.fingerprint,
    }


def _read_paid(record: object) -> _Paid | None:
    if not isinstance(record, dict):
        return None
    return {str(name): str(value) for name, value in record.items()}


def _check_same(journal: Path, earlier: Mapping[str, object], current: Mapping[str, object]) -> None:
    """Refuse to go on with another sweep."""
    if differ := sorted(name for name in {*earlier, *current} if earlier.get(name) != current.get(name)):
        name = differ[0]
        if "settings" in differ:  # the noise follows from them, so it is not what was changed
            name = _changed(earlier.get("settings"), current.get("settings"))
        raise InvalidParameter(
            f"The journal {journal} is of a sweep with another '{name}'. "
            "Repeat its command to go on with it, or take another place for the results."
        )


def _changed(earlier: object, current: object) -> str:
    """The first setting that takes other values, or all of them if they are only combined otherwise."""
    if isinstance(earlier, list) and isinstance(current, list):
        for name in current[0]:
            if {str(each.get(name)) for each in earlier} != {str(each[name]) for each in current}:
                return _PARAMETERS.get(str(name), str(name))
    return "settings"


def _check_paid(journal: Path, paid: _Paid | None, ledger: Ledger | None) -> None:
    """Refuse to go on from a ledger that did not pay."""
    if ledger is None:
        return
    if paid is None or paid.get("ledger") != ledger.terms.identity:
        raise LedgerError(
            f"The sweep in the journal {journal} was not paid from this ledger. "
            "Pass the one that paid, or take another place for the results."
        )
    entry = ledger.entry(int(paid["number"]))
    if entry is None or entry.fingerprint != paid["fingerprint"]:
        raise LedgerError(
            f"The ledger does not hold the payment for the sweep in the journal {journal}. Do not rely on it."
        )


Row = dict[str, str | int | float | None]


def means(sweep: Sweep, runs: Sequence[Finished]) -> list[Row]:
    """A row for each setting that was run; the names of the first five columns are the source's.

    Accuracies are shares. `accuracy_std` is their deviation over the repeats, empty for a single one.
    """
    rows = []
    for place, (setting, planned) in enumerate(zip(sweep.settings, sweep.plans, strict=True)):
        group = [each for each in runs if each.setting == place]
        if not group:
            continue
        accuracies = [each.accuracy for each in group]
        rows.append(
            {
                "learning_rate": setting.learning_rate,
                "batch_size": setting.batch_size,
                "n_epochs": setting.epochs,
                "accuracy": statistics.mean(accuracies),
                "n_times_for_avg": len(group),
                "accuracy_std": statistics.stdev(accuracies) if len(group) > 1 else None,
                "epsilon": planned.epsilon.upper,
                "delta": sweep.delta,
                "noise": planned.noise_multiplier,
                "clip": setting.clip,
                "hidden_units": setting.hidden,
                "sampler": str(sweep.sampler),
                "steps": planned.steps,
                "seconds": statistics.mean(each.seconds for each in group),
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
            "noise": sweep.plans[run.setting].noise_multiplier,
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
        "batch_size": setting.batch_size,
        "n_epochs": setting.epochs,
        "clip": setting.clip,
        "hidden_units": setting.hidden,
    }
