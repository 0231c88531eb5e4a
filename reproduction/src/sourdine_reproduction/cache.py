"""Results on the disk, so that a long series of experiments can be broken off and gone on with."""

import hashlib
import json
from functools import cache
from pathlib import Path

import sourdine
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.serialization import decoded, encoded
from sourdine_reproduction.data import data_sentence
from sourdine_reproduction.registry import Experiment, Result, Settings

FOLDER = ".done"


def run_or_read(experiment: Experiment, settings: Settings, folder: Path) -> tuple[Result, bool]:
    """The result that an earlier run left in a folder, or a new one; and whether it is an earlier one.

    An earlier result counts only if it was made by the same code with the same settings on the same data.
    """
    place, mark = _place(experiment, folder), _mark(experiment.name, settings)
    try:
        document = json.loads(place.read_text(encoding="utf-8"))
        if document["mark"] == mark:
            return decoded(Result, document["result"], strict=True), True
    except (OSError, ValueError, KeyError, TypeError, InvalidParameter):
        pass  # none, or not whole
    result = experiment.run(settings)
    place.parent.mkdir(parents=True, exist_ok=True)
    disk.write_whole(place, json.dumps({"mark": mark, "result": encoded(result)}))
    return result, False


def read(experiment: Experiment, folder: Path) -> Result | None:
    """What a run left in a folder, by whatever code and settings it was made; or none."""
    try:
        document = json.loads(_place(experiment, folder).read_text(encoding="utf-8"))
        return decoded(Result, document["result"], strict=True)
    except OSError:
        return None


def forget(experiment: Experiment, folder: Path) -> None:
    """Throw away what an earlier run left in a folder."""
    _place(experiment, folder).unlink(missing_ok=True)


def _place(experiment: Experiment, folder: Path) -> Path:
    return folder / FOLDER / f"{experiment.name}.json"


def _mark(name: str, settings: Settings) -> str:
    data = None if settings.data is None else str(settings.data.resolve())
    return f"{_code()} {'quick' if settings.quick else 'full'} {data} {data_sentence(name, settings.data)}"


@cache
def _code() -> str:
    """A fingerprint of both packages: experiments and what they run."""
    digest = hashlib.sha256()
    for root in (Path(sourdine.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
