"""How the files in `0.1` were made: by version 0.1.0, once. No test runs this.

    python -m tests.golden.make_0_1 FOLDER

makes such files anew in a new folder. Tables, secrets, names and losses come out the same; identities, times
and noise do not, since charges, releases and reports are made with the real clock and with secure bits, as
users make them. It speaks the names of version 0.1.0 and runs with that version only.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sourdine.core.codec import encoded
from typer.testing import CliRunner

import sourdine as sd
from sourdine.accounting import DisjointPart, FixedSize, Poisson, Shuffled, Spend
from sourdine.accounting.ledger import (
    ConcentratedBudget,
    Ledger,
    Period,
    PureBudget,
    Receipt,
    RenyiBudget,
    Terms,
)
from sourdine.accounting.release import Release
from sourdine.cli import app
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.learning import NoisyGradient
from sourdine.learning.result import card_of
from sourdine.local import Question
from sourdine.local.rappor import BasicOneTimeRappor, BasicRappor, Device, OneTimeRappor, Rappor
from sourdine.mechanisms import Gaussian, Geometric, Laplace, PartitionThreshold
from sourdine.tables.mock import draw_register
from sourdine.tables.quantiles import quantiles
from tests import contract
from tests.golden import training_0_1 as training
from tests.golden.specifications_0_1 import SPECIFICATIONS

ADD_REMOVE, REPLACE, ZERO_OUT = sd.Neighbours
EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
FREQUENCY = (
    "kary",
    "symmetric-unary",
    "optimal-unary",
    "local-hashing",
    "subset",
    "hadamard",
    "projective",
)
NUMERIC = ("duchi", "piecewise", "hybrid", "square-wave", "bounded-laplace", "bounded-staircase")
LABELS = ("on foot", "bicycle", "train", "bus", "car", "métro", "at home")
WORDS = ("example.org", "example.com", "example.net", "é.example")
SECRET = bytes(range(32))
LEDGERS = {  # unit, budget and the rest of the terms
    "pure": Terms(budget=PureBudget(limit=1000), unit="person", neighbours=REPLACE),
    "zcdp": Terms(budget=ConcentratedBudget(limit=100), unit="person", neighbours=ADD_REMOVE, delta=1e-6),
    "renyi": Terms(budget=RenyiBudget(limit=1000, order=8), unit="person", neighbours=ADD_REMOVE, delta=1e-5),
    "reserve": Terms(
        budget=ConcentratedBudget(limit=100),
        unit="patient",
        neighbours=ADD_REMOVE,
        delta=0.6,
        reserve=Fraction(1, 2),
    ),
    "period": Terms(
        budget=PureBudget(limit=1000),
        unit="person",
        neighbours=ADD_REMOVE,
        period=Period.MONTH,
        period_limit=500,
    ),
    "zero_out": Terms(
        budget=RenyiBudget(limit=1000, order=Fraction(5, 2)), unit="person", neighbours=ZERO_OUT, delta=1e-5
    ),
    "fixed": Terms(budget=RenyiBudget(limit=1000, order=4), unit="person", neighbours=REPLACE, delta=1e-5),
}


def run(*words: object) -> str:
    """A command, as somebody types it."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exit_code:
        raise SystemExit(f"sourdine {' '.join(map(str, words))}: {done.output}") from done.exception
    return done.stdout


def keep(path: Path, content: object) -> None:
    """Something as JSON in a file."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def number(value: Fraction | float) -> str:
    """A number with all its digits: a fraction like '5/3', anything else as Python writes a float."""
    return str(value) if isinstance(value, Fraction | int) else repr(float(value))


# names


def make_names(place: Path) -> None:
    """Every mechanism and sampling: what it is called, its fields, and what it loses."""
    mechanisms: list[dict[str, object]] = []
    seen = []
    for kind in contract.mechanisms():
        for example in kind.examples():
            made = example.mechanism
            held = {"mechanism": made.to_json(), "distance": encoded(example.distance)}
            if hasattr(made, "identity"):
                held["identity"] = made.identity  # what reports, memos and devices are keyed by
            if held not in seen:
                seen.append(held)
                mechanisms.append(held | {"loss": loss_of(made.loss(example.distance))})
    samplings = [{"spend": spend.to_json(), "loss": loss_of(spend.one_loss())} for spend in sampled()]
    keep(place, {"mechanisms": mechanisms, "samplings": samplings})


def loss_of(loss: PrivacyLoss) -> dict[str, object]:
    """A loss in full digits."""
    return {
        "neighbours": loss.neighbours.value,
        "epsilon": number(loss.epsilon),
        "rho": number(loss.rho),
        "delta": number(loss.delta),
        "profile": {repr(at): repr(float(loss.profile(at))) for at in EPSILONS},
    }


def sampled() -> Iterator[Spend]:
    """Spends with each way of drawing units."""
    for relation, sampling in [
        (ADD_REMOVE, Poisson(rate=Fraction(1, 100))),
        (REPLACE, FixedSize(size=50, of=5000)),
        (ZERO_OUT, Shuffled(batch=50, of=5000)),
        (REPLACE, Shuffled(batch=50, of=5000)),
    ]:
        for mechanism, distance in [
            (Laplace(scale=2), sd.Distance.l1(1, neighbours=relation)),
            (NoisyGradient(sigma=Fraction(3, 2)), sd.Distance.l2(1, neighbours=relation)),
        ]:
            yield Spend(mechanism=mechanism, distance=distance, sampling=sampling, count=7)


# ledgers


def make_ledgers(folder: Path) -> None:
    """Every example of every mechanism, charged wherever it can be paid; sampled spends; parts; blocks."""
    for name, terms in LEDGERS.items():
        with Ledger.create(folder / f"{name}.ledger", terms) as ledger:
            for spend in spends_for(terms):
                kind = type(spend.mechanism).__name__
                receipt = ledger.charge(spend, purpose=f"an example of {kind}")
            certify(folder / f"{name}-example.certificate.json", ledger, (spend,), receipt)
            make_blocks(folder / f"{name}-block.certificate.json", ledger)


def spends_for(terms: Terms) -> Iterator[Spend]:
    """The examples for the neighbours of a ledger, as far as it pays for them, and sampled spends."""
    kinds = list(contract.mechanisms())
    if terms.reserve is not None or terms.period is not None or terms.budget.name == "renyi":
        kinds = [Gaussian, Geometric, PartitionThreshold, Laplace, NoisyGradient]  # the others hold the rest
    examples = [
        Spend(mechanism=each.mechanism, distance=each.distance)
        for kind in kinds
        for each in islice(kind.examples(), 2)
    ]
    for spend in (*examples, *sampled()):
        if spend.distance.neighbours is not terms.neighbours:
            continue
        try:
            loss = spend.one_loss()
            terms.budget.price(loss)
        except UnsupportedLoss:
            continue
        if terms.reserve is not None or not loss.delta:
            yield spend


def make_blocks(certificate: Path, ledger: Ledger) -> None:
    """Charges of several spends, with parts, counts, an author, declarations and seeded noise."""
    relation = ledger.terms.neighbours
    count = Spend(mechanism=Geometric(scale=20), distance=sd.Distance.l1(1, neighbours=relation))
    real = Spend(
        mechanism=Laplace(scale=30, granularity=Fraction(1, 4)),
        distance=sd.Distance.l1(Fraction(5, 2), coordinates=1, neighbours=relation),
        count=3,
    )
    block: tuple[Spend, ...] = (count, real)
    if relation is not REPLACE:
        women = replace(count, part=DisjointPart("sex", "f"))
        block += (
            women,
            replace(real, part=DisjointPart("sex", "f")),
            replace(women, part=DisjointPart("sex", "m"), count=2),
        )
    stated = {"age": '{"lower": 0, "upper": 120}', "salaire (€)": "0 … 100 000"}
    ledger.charge(*block, purpose="seeded, for a course", author="a teacher", secure=False, declared={})
    receipt = ledger.charge(
        *block, purpose="counts and sums – «par sexe»", author="Zoé", secure=True, declared=stated
    )
    certify(certificate, ledger, block, receipt, secure=True)


def certify(
    path: Path, ledger: Ledger, spends: tuple[Spend, ...], receipt: Receipt, *, secure: bool = True
) -> None:
    """The certificate of a charge."""
    made = Release(values=None, intervals=None, spends=spends, receipt=receipt, secure=secure)
    path.write_text(made.certificate(ledger).to_json() + "\n", encoding="utf-8")


def note_ledgers(folder: Path) -> None:
    """What every ledger says of itself, once all is charged."""
    with Ledger.open(folder / "period.ledger") as ledger:
        ledger.backup(folder / "backup.ledger").close()
    for path in sorted(folder.glob("*.ledger")):
        keep(path.with_suffix(".status.json"), json.loads(run("ledger", "status", path, "--json")))
        held = json.loads(run("ledger", "export", path))  # without its spaces
        path.with_suffix(".history.json").write_text(json.dumps(held) + "\n", encoding="utf-8")


# releases of tables


def make_tables(folder: Path) -> None:
    """Tiny tables, specifications of all there is, and releases of some."""
    register = draw_register(150, seed=1)
    register.write(folder / "people.csv")
    people = np.arange(240)
    towns = ("Lille", "Roubaix", "Arras", "Nice", "Antibes", "Toulon")
    wards = ("medicine", "surgery", "medicine")
    places = ("Nord,north", "Nord,north", "Pas-de-Calais,north", *["Alpes-Maritimes,south"] * 2, "Var,south")
    visits = [
        f"{1000 + i * i % 97},{towns[i * i % 7 % 6]},{wards[i % 3]},{i % 9},{i % 5 == 0}"
        for i in people.tolist()
    ]
    write_lines(folder / "visits.csv", ["patient,town,ward,days,urgent", *visits])
    write_lines(
        folder / "places.csv", ["name,department,region", *map(",".join, zip(towns, places, strict=True))]
    )
    rows = [f"{place.split(',')[1]},{town}" for town, place in zip(towns, places, strict=True)]
    write_lines(folder / "towns.csv", ["region,town", *rows])
    latin = [f"{i % 4},{1.5 + i % 40 / 100},é" for i in range(40)]
    (folder / "latin.csv").write_bytes("\n".join(["class,height,note", *latin, ""]).encode("latin-1"))
    for name, text in SPECIFICATIONS.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    for name in SPECIFICATIONS:
        path = folder / f"{name}.toml"
        if "ledger =" not in text_of(path):
            continue
        formats = ("csv", "json", "parquet") if name == "everything" else ("csv",)
        words = [word for each in formats for word in ("--format", each)]
        run("release", path, "-o", folder / f"{name}-release", *words, "--no-report")  # a page is large
    bounds = ("--column", "salary", "--epsilon", "0.5", "--type", "real", "--json")
    keep(folder / "bounds.json", json.loads(run("bounds", folder / "everything.toml", *bounds)))
    for name in SPECIFICATIONS:
        planned = json.loads(run("plan", folder / f"{name}.toml", "--json"))
        keep(folder / f"{name}.plan.json", planned)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_quantiles(folder: Path, ledger: Path) -> None:
    """Releases of quantiles by every method, each with its certificate."""
    values = (np.arange(200) * 37 % 101).astype(float)
    for method in ("tree", "auto", "joint", "recursive", "inverse", "smooth", "histogram", "naive"):
        with Ledger.open(ledger) as payer:
            made = quantiles(
                values,
                at=[0.25, 0.5, 0.75],
                bounds=(0, 100),
                epsilon=Fraction(1, 2),
                granularity=1,
                size=200,
                method=method,
                ledger=payer,
                purpose=f"quantiles by {method}",
            )
            (folder / f"{method}.certificate.json").write_text(made.certificate(payer).to_json() + "\n")


# local answers


def make_questions(folder: Path) -> None:
    """For every oracle a question, reports, their counts and what they say."""
    write_lines(folder / "labels.txt", list(LABELS))
    write_lines(folder / "answers.txt", [LABELS[min(i % 11, 6)] for i in range(60)])
    write_lines(folder / "numbers.txt", [str(i * 7 % 101 / 4 + 1) for i in range(60)])
    (folder / "device.key").write_bytes(SECRET)
    for name in FREQUENCY:
        run("local", "spec", f"way to work, {name}", "--epsilon", "3/2", "--labels", folder / "labels.txt",
            "--oracle", name, "-o", folder / f"{name}.json")  # fmt: skip
        make_reports(folder, name, "answers.txt")
    for name in NUMERIC:
        run("local", "spec", f"hours, {name}", "--epsilon", "2", "--lower", "0", "--upper", "24",
            "--oracle", name, "-o", folder / f"{name}.json")  # fmt: skip
        make_reports(folder, name, "numbers.txt")
    for name, oracle in {
        "basic-rappor": BasicRappor(categories=7, f=0.5, p=0.5, q=0.75),
        "basic-one-time-rappor": BasicOneTimeRappor(categories=7, f=0.5),
    }.items():
        question = Question(name=f"way to work, {name}", oracle=oracle, labels=LABELS)
        keep(folder / f"{name}.json", question.to_json())
        make_reports(folder, name, "answers.txt")
    run("local", "spec", "number", "--epsilon", "1", "--categories", "300", "-o", folder / "chosen.json")


def make_reports(folder: Path, name: str, answers: str) -> None:
    """Reports of many people, and those of one device, which are the same for ever."""
    question = folder / f"{name}.json"
    run("local", "encode", question, folder / answers, "-o", folder / f"{name}.reports.txt")
    run("local", "encode", question, folder / answers, "-o", folder / f"{name}.device.txt",
        "--secret", folder / "device.key")  # fmt: skip
    told = run("local", "estimate", question, folder / f"{name}.reports.txt", "--counts",
               folder / f"{name}.counts.json", "--json")  # fmt: skip
    keep(folder / f"{name}.estimate.json", json.loads(told))


def make_rappor(folder: Path) -> None:
    """Words by RAPPOR: our files and Google's, devices with a secret, and what decoders find."""
    write_lines(folder / "candidates.txt", [*WORDS, "example.edu", "example.info"])
    write_lines(folder / "words.txt", [WORDS[min(i % 8, 3) if i % 8 else 0] for i in range(400)])
    size = ("--bits", 16, "--hashes", 2, "--cohorts", 4)
    listed = folder / "candidates.txt"
    for params, reports, noise in [
        ("pages.json", "reports.txt", ("--epsilon", 3, "--epsilon-infinity", 5)),
        ("params.csv", "reports.csv", ("--f", "0.25", "--p", "0.25", "--q", "0.75")),
        ("once.json", "once.txt", ("--epsilon", 4, "--once")),
    ]:
        run("local", "rappor", "encode", folder / params, folder / "words.txt", "-o", folder / reports,
            *size, *noise, "--name", "home page")  # fmt: skip
        stem = Path(params).stem
        kept = ("--counts", folder / f"{stem}.counts{Path(params).suffix}")
        if params == "params.csv":
            kept += ("--keep-map", folder / "map.csv", "--results", folder / "results.csv")
        for decoder in ("least-squares", "lasso", "non-negative", "em"):
            told = run("local", "rappor", "decode", folder / params, folder / reports, "--candidates", listed,
                       "--decoder", decoder, "--json", *kept)  # fmt: skip
            keep(folder / f"{stem}.{decoder}.json", json.loads(told))
            kept = ()
    keep(folder / "devices.json", [device_of(oracle, purpose) for oracle, purpose in devices()])


def devices() -> Iterator[tuple[Any, str]]:
    """Every variant, with and without a purpose."""
    size = {"bits": 16, "hashes": 2, "cohorts": 4}
    for purpose in ("", "home page"):
        yield Rappor(**size, f=0.5, p=0.5, q=0.75), purpose
        yield OneTimeRappor(**size, f=Fraction(5, 7)), purpose
        yield BasicRappor(categories=9, f=0.5, p=0.25, q=0.75), purpose
        yield BasicOneTimeRappor(categories=9, f=Fraction(2, 3)), purpose


def device_of(oracle: Any, purpose: str) -> dict[str, object]:
    """The permanent responses of a device, which must never change."""
    device = Device(oracle=oracle, secret=SECRET, purpose=purpose)
    values = range(9) if hasattr(oracle, "categories") else WORDS
    return {
        "oracle": oracle.to_json(),
        "secret": SECRET.hex(),
        "purpose": purpose,
        "cohort": device.cohort,
        "permanent": [[value, device.permanent(value).tobytes().hex()] for value in values],
    }


# a cleaned table


def make_cleaning(folder: Path, table: Path, ledger: Path) -> None:
    """A table whose cells are private, paid, with all kinds of noise; and one that nobody paid for."""
    (folder / table.name).write_bytes(table.read_bytes())
    (folder / "clean.toml").write_text(CLEAN, encoding="utf-8")
    words = ("local", "clean", folder / table.name, "--spec", folder / "clean.toml", "--json")
    told = run(*words, "--ledger", ledger, "-o", folder / "paid")
    keep(folder / "paid.json", json.loads(told))
    keep(folder / "each.json", json.loads(run(*words, "--rows", 2, "--unit", "house", "--no-report",
                                              "-o", folder / "unpaid")))  # fmt: skip


CLEAN = """\
[columns.age]
type = "integer"
lower = 18
upper = 99
missing = 40

[columns.sex]
type = "category"
keys = ["f", "m"]
missing = "f"

[columns.region]
type = "category"
keys = ["north", "east", "south", "west", "centre"]

[columns.salary]
type = "real"
lower = 0.0
upper = 120000.0
granularity = 100.0

[clean]
epsilon = 12
unit = "person"
method = "laplace"
share = 0.3

[clean.columns.age]
epsilon = 2.5
method = "staircase"

[clean.columns.salary]
method = "unbiased"
"""


# training


def make_training(folder: Path, people: Path, ledgers: Path) -> None:
    """Runs that were killed and one that was finished, a model with its card, and a sweep."""
    for name in training.RUNS:
        training.kill(name, folder / f"{name}.run", ledgers)
    done = training.train("plain", folder / "finished.run", ledgers)
    card = card_of(done, ledgers / "renyi.ledger", name="A line between two kinds")
    (folder / "card.md").write_text(card.text(), encoding="utf-8")
    (folder / "card.json").write_text(card.to_json() + "\n", encoding="utf-8")
    training.sweep(folder / "sweep.journal", ledgers)
    run("train", "fit", people, "--spec", people.with_name("everything.toml"), "--target", "sex", "--model",
        "linear", "--epsilon", 4, "--delta", "1e-4", "--epochs", 2, "--batch", 50, "--ledger",
        ledgers / "renyi.ledger", "-o", folder / "model")  # fmt: skip
    for lock in folder.glob("*.lock"):
        lock.unlink()


def make_manifest(folder: Path) -> None:
    """The SHA-256 of every file, as `sha256sum` writes it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "MANIFEST")
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}"
        for path in paths
    ]
    write_lines(folder / "MANIFEST", lines)


def main() -> None:
    """All files, into a new folder."""
    os.environ |= {"LOGNAME": "sourdine", "USER": "sourdine"}  # who pays, as ledgers note it
    torch.set_num_threads(1)
    out = Path(sys.argv[1])
    out.mkdir()
    with chdir(out):
        here = Path()
        for name in ("ledgers", "tables", "quantiles", "local", "rappor", "cleaner", "training"):
            Path(name).mkdir()
        make_names(here / "names.json")
        make_ledgers(here / "ledgers")
        make_tables(here / "tables")
        make_quantiles(here / "quantiles", here / "ledgers/pure.ledger")
        make_questions(here / "local")
        make_rappor(here / "rappor")
        make_cleaning(here / "cleaner", here / "tables/people.csv", here / "ledgers/pure.ledger")
        make_training(here / "training", here / "tables/people.csv", here / "ledgers")
        note_ledgers(here / "ledgers")
        make_manifest(here)


if __name__ == "__main__":
    main()
