"""Which published data lie in a folder, and which experiments run on them instead of on a stand-in."""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter

SALARY = "Base Annualized Salary"  # the twelfth column, which the source took
_BYTES_OF_A_HEADER = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Data that an experiment asks for: where they lie, or what stands in for them."""

    name: str
    place: Path | None
    stand_in: str
    verb: str = "are"

    def sentence(self) -> str:
        """In a sentence, whether the data are real."""
        if self.place is None:
            return f"STAND-IN: {self.name} {self.verb} not at hand, so {self.stand_in}."
        return f"Real data: {self.name}, from {self.place}."


def origins_of(experiment: str, data: Path | None) -> tuple[Origin, ...]:
    """What an experiment runs on, with a folder of downloaded data or without; none if it needs no data."""
    return _NEEDS[experiment](data) if experiment in _NEEDS else ()


def data_sentence(experiment: str, data: Path | None) -> str:
    """The same in words.

    >>> data_sentence("budget", None)
    'It needs no data.'
    >>> data_sentence("cleaner", None)
    'STAND-IN: the Pima table is not at hand, so a made-up table has its published moments.'
    """
    return " ".join(each.sentence() for each in origins_of(experiment, data)) or "It needs no data."


def digits_in(data: Path | None) -> Path | None:
    """The folder with the IDX files of MNIST, as they are downloaded or as torchvision lays them down."""
    return _first(
        data, ("mnist", "MNIST", "MNIST/raw", "."), lambda place: any(place.glob("train-images?idx3-ubyte*"))
    )


def flowers_in(data: Path | None) -> Path | None:
    """The folder of 102 flowers: as published, or in train and valid with a folder for each class."""
    published = _first(data, (*_FLOWERS, "."), lambda place: (place / "imagelabels.mat").is_file())
    return published or _first(
        data, _FLOWERS, lambda place: (place / "train").is_dir() and (place / "valid").is_dir()
    )


def weights_in(data: Path | None) -> Path | None:
    """The published weights of VGG16."""
    return _file(data, ("vgg16*.pth", "vgg/vgg16*.pth", "weights/vgg16*.pth"))


def pima_in(data: Path | None) -> Path | None:
    """The Pima table, under the name of either place that it is downloaded from."""
    names = ("pima-indians-diabetes.csv", "diabetes.csv")
    return _file(data, tuple(f"pima/{name}" for name in names) + names)


def salaries_in(data: Path | None) -> Path | None:
    """The salaries of local authorities, under the name of the download or the source's own."""
    names = ("Salary_Information_for_Local_Authorities*.csv", "salaries.csv")
    return _file(data, tuple(f"salaries/{name}" for name in names) + names)


def unused_in(data: Path | None) -> str:
    """What lies there and is not needed, in a sentence."""
    cifar = _first(data, ("cifar-10-batches-py", "cifar-10-batches-bin"), Path.is_dir) or _file(
        data, ("cifar-10-*.tar.gz",)
    )
    return f"CIFAR-10 is at {cifar} and not used: the source prints no numbers of it." if cifar else ""


def read_numbers(
    path: Path, columns: Iterable[str], *, size: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """Columns of numbers out of a CSV file by the names in its header; NaN where a cell is empty.

    Commas, semicolons or tabs part the cells, commas may part thousands. Without a header the columns are
    those that are asked for, in their order.
    """
    names = list(columns)
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            first = file.readline(_BYTES_OF_A_HEADER)
            mark = max(",;\t", key=first.count)
            header = [cell.strip().strip('"').casefold() for cell in first.split(mark)]
            named = all(name.casefold() in header for name in names)
            if not named:
                file.seek(0)
                header = [name.casefold() for name in names]
            places = [header.index(name.casefold()) for name in names]
            cells = [row for row in csv.reader(file, delimiter=mark) if row]
            if not named and any(len(row) != len(names) for row in cells):
                raise ValueError("other columns")
            rows = [[_number(row[place]) for place in places] for row in cells]
    except (OSError, ValueError, IndexError, csv.Error):
        rows = []
    if not rows or (size is not None and len(rows) != size):
        many = "" if size is None else f" and {size:,} rows"
        raise InvalidParameter(
            f"The file {path} is no table with numbers in the columns {', '.join(names)}{many}. Fetch it "
            "again, or take it away: then a stand-in is used."
        )
    return dict(zip(names, np.array(rows).T, strict=True))


def _number(cell: str) -> float:
    plain = cell.strip().lstrip("$").replace(",", "")
    return float(plain) if plain else float("nan")


_FLOWERS = ("102flowers", "flowers", "flowers-102", "flowers102")


def _first(data: Path | None, names: Iterable[str], holds: Callable[[Path], bool]) -> Path | None:
    places = [] if data is None else [data / name for name in names]
    return next((place for place in places if place.is_dir() and holds(place)), None)


def _file(data: Path | None, patterns: Iterable[str]) -> Path | None:
    paths = [] if data is None else [path for each in patterns for path in sorted(data.glob(each))]
    return next((path for path in paths if path.is_file()), None)


def _digits(data: Path | None) -> tuple[Origin, ...]:
    stand_in = "nothing is trained, and the accounting alone is done again"
    return (Origin(name="the images of MNIST", place=_learnt(digits_in(data)), stand_in=stand_in),)


def _heads(data: Path | None) -> tuple[Origin, ...]:
    place = flowers_in(data) if weights_in(data) else None
    other = digits_in(data)
    stand_in = "heads learn from " + (
        "made-up images" if other is None else f"the digits of MNIST in {other}"
    )
    if find_spec("torch") is None:
        stand_in = "nothing is trained, since torch is not installed"
    return (Origin(name="102 flowers with the weights of VGG16", place=_learnt(place), stand_in=stand_in),)


def _learnt(place: Path | None) -> Path | None:
    return None if find_spec("torch") is None else place


def _pima(data: Path | None) -> tuple[Origin, ...]:
    stand_in = "a made-up table has its published moments"
    return (Origin(name="the Pima table", place=pima_in(data), stand_in=stand_in, verb="is"),)


def _salaries(data: Path | None) -> tuple[Origin, ...]:
    stand_in = "a made-up register has the published deciles"
    return (Origin(name="the salaries of New York", place=salaries_in(data), stand_in=stand_in),)


_NEEDS: dict[str, Callable[[Path | None], tuple[Origin, ...]]] = {
    "mnist": _digits,
    "learning": _heads,
    "cleaner": _pima,
    "quantiles": _salaries,
}
