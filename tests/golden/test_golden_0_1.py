"""What version 0.1 wrote stays readable, and means what it meant.

Imports, names of commands and of options may follow what is renamed. What is asserted of the files may not
change: they are in people's hands, and `0.1` is only ever added to (see `make_0_1.py` for how it was made).
"""

import hashlib
import importlib
import json
import math
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from sourdine import LedgerError
from sourdine.accounting import Spend
from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger
from sourdine.cli import app
from sourdine.core.errors import OldWord
from sourdine.core.mechanism import Mechanism
from sourdine.local import HadamardResponse, Question
from sourdine.local.cleaner import Cleaner
from sourdine.local.numeric.oracle import NumericOracle
from sourdine.local.rappor import Device
from sourdine.mechanisms.randomized_response import Channel
from sourdine.tables import Specification
from sourdine.tables.publication import Record

KEPT = Path(__file__).parent / "0.1"
LEDGERS = sorted(path.stem for path in KEPT.glob("ledgers/*.ledger"))
CERTIFICATES = sorted(str(path.relative_to(KEPT)) for path in KEPT.rglob("*certificate.json"))
SPECIFICATIONS = sorted(path.stem for path in KEPT.glob("tables/*.toml"))
RELEASES = sorted(path.parent.name for path in KEPT.glob("tables/*/release.json"))
QUESTIONS = sorted(path.name.removesuffix(".reports.txt") for path in KEPT.glob("local/*.reports.txt"))
ASKED = [f"local/{name}" for name in QUESTIONS]
DECODED = sorted(path.stem for path in KEPT.glob("rappor/*.*.json") if "counts" not in path.name)
RUNS = ("averaged", "fixed", "people", "plain", "shuffled")
CLOSE = 1e-9  # relative; floats may differ in their last digits between machines


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


NAMES = read(KEPT / "names.json")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to read from: ledgers keep a log beside them."""
    return Path(shutil.copytree(KEPT, tmp_path_factory.mktemp("golden") / "0.1"))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A copy to write to."""
    return Path(shutil.copytree(KEPT, tmp_path / "0.1"))


@pytest.fixture(scope="module")
def ledgers(shared: Path) -> Iterator[dict[str, Ledger]]:
    """Every ledger by its identity, opened once: a verification replays it all."""
    opened = [Ledger.open(shared / f"ledgers/{name}.ledger") for name in LEDGERS]
    yield {ledger.terms.identity: ledger for ledger in opened if not ledger.is_backup}
    for ledger in opened:
        ledger.close()


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def same(found: object, kept: object, digits: float = 1e-6) -> None:
    """As it was kept, floats up to their last digits; what is new beside it is no matter."""
    if isinstance(kept, dict):
        assert isinstance(found, dict)
        assert set(kept) <= set(found)
        for name, value in kept.items():
            same(found[name], value, digits)
    elif isinstance(kept, list):
        assert isinstance(found, list)
        assert len(found) == len(kept)
        for one, other in zip(found, kept, strict=True):
            same(one, other, digits)
    elif isinstance(kept, float) and isinstance(found, int | float):
        assert math.isclose(found, kept, rel_tol=digits, abs_tol=1e-9)
    else:
        assert found == kept


def ends_of(channel: Channel, n: int, share: float, alpha: float) -> tuple[float, float]:
    """The shares from which and up to which a count, or one further out, is likelier than alpha/2."""
    seen = round(n * (channel.q + (channel.p - channel.q) * share))
    above, below = [], []
    for m in range(n + 1):
        others = np.arange(n - m + 1)
        masses = binom.pmf(others, n - m, channel.q)
        if masses @ binom.sf(seen - 1 - others, m, channel.p) > alpha / 2:
            above.append(m)
        if masses @ binom.cdf(seen - others, m, channel.p) > alpha / 2:
            below.append(m)
    return min(above, default=n) / n, max(below, default=0) / n


def same_estimate(found: dict[str, Any], kept: dict[str, Any], question: Question) -> None:
    """All as it was kept but the intervals, which did not hold as often as stated.

    Those of shares are those of their definition: from the least to the largest number of people under whom
    such a count, or one further out, has more than half of the error's probability. Those of means allow for
    rounding to the grid besides. Shares constrained to a whole are shown since.
    """
    ends = ("lower", "upper")
    shown = [each["constrained"] for each in found["answers"]]
    if isinstance(question.oracle, NumericOracle):
        oracle = question.oracle
        assert shown == [None]
        (now,), (before,) = found["answers"], kept["answers"]
        rounding = oracle.reach * oracle.rounding
        assert now["lower"] == pytest.approx(before["lower"] - rounding)
        assert now["upper"] == pytest.approx(before["upper"] + rounding)
        return same(found, {**kept, "answers": [{key: before[key] for key in before if key not in ends}]})
    assert sum(shown) == pytest.approx(1)
    assert min(shown) >= 0
    plain = [{key: each[key] for key in each if key not in ends} for each in kept["answers"]]
    same(found, {**kept, "answers": plain})
    channel, n = question.oracle.channel, found["reports"]  # type: ignore[attr-defined]
    alpha = 1 - found["confidence"]
    for one, before in zip(found["answers"], kept["answers"], strict=True):
        if isinstance(question.oracle, HadamardResponse):  # votes in shared blocks have a test of their own
            assert 0 <= one["lower"] <= max(before["lower"], 0) + 0.1
            assert min(before["upper"], 1) - 0.1 <= one["upper"] <= 1
            continue
        assert (one["lower"], one["upper"]) == pytest.approx(ends_of(channel, n, one["unbiased"], alpha))
    return None


def without_ends_of_found(kept: dict[str, Any]) -> dict[str, Any]:
    """Decoded words without the intervals of those found, which now hold given that they were found."""
    ends = ("lower", "upper")
    words = [
        {key: each[key] for key in each if key not in ends or not each.get("found")} for each in kept["words"]
    ]
    return {**kept, "words": words}


def number(text: str) -> Fraction | float:
    return float(text) if any(sign in text for sign in ".einf") else Fraction(text)


# the files


def test_no_file_is_changed_or_lost() -> None:
    lines = (KEPT / "MANIFEST").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    for name, digest in listed.items():
        assert hashlib.sha256((KEPT / name).read_bytes()).hexdigest() == digest, f"{name} was changed"
    there = {path.relative_to(KEPT).as_posix() for path in KEPT.rglob("*") if path.is_file()}
    assert there == {*listed, "MANIFEST"}, "list what is new in the MANIFEST, and leave nothing beside it"


# names and what they mean


@pytest.mark.parametrize(
    "kept", NAMES["mechanisms"], ids=lambda kept: kept["mechanism"]["mechanism"].rpartition(".")[2]
)
def test_a_mechanism_is_known_by_its_name_and_loses_what_it_lost(kept: dict[str, Any]) -> None:
    made = Mechanism.from_json(kept["mechanism"])
    written = made.to_json()
    same({**written, "mechanism": kept["mechanism"]["mechanism"]}, kept["mechanism"])
    assert Mechanism.from_json(json.loads(json.dumps(written))) == made
    spend = Spend.from_json({"mechanism": kept["mechanism"], "distance": kept["distance"]})
    assert spend.mechanism == made
    check_loss(spend, kept["loss"])
    if "identity" in kept:
        assert made.identity == kept["identity"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kept", NAMES["samplings"], ids=lambda kept: kept["spend"]["sampling"]["sampling"])
def test_a_sampling_is_known_by_its_name_and_amplifies_as_it_did(kept: dict[str, Any]) -> None:
    spend = Spend.from_json(kept["spend"])
    assert Spend.from_json(json.loads(json.dumps(spend.to_json()))) == spend
    check_loss(spend, kept["loss"])


def check_loss(spend: Spend, kept: dict[str, Any]) -> None:
    loss = spend.one_loss()
    assert loss.neighbours.value == kept["neighbours"]
    for name in ("epsilon", "rho", "delta"):
        held, found = number(kept[name]), getattr(loss, name)
        if isinstance(held, Fraction) and isinstance(found, int | Fraction):
            assert found == held, name
        else:
            assert math.isclose(found, held, rel_tol=CLOSE), name
    for epsilon, delta in kept["profile"].items():
        assert math.isclose(float(loss.profile(float(epsilon))), float(delta), rel_tol=CLOSE, abs_tol=1e-14)


def test_the_ledgers_hold_every_mechanism_every_sampling_and_parts() -> None:
    spends = [
        spend
        for name in LEDGERS
        for entry in read(KEPT / f"ledgers/{name}.history.json")["entries"]
        for spend in entry["spends"]
    ]
    named = {each["mechanism"]["mechanism"] for each in NAMES["mechanisms"]}
    assert len(named) == 39
    assert {spend["mechanism"]["mechanism"] for spend in spends} == named
    assert {each["sampling"]["sampling"] for each in spends if each["sampling"]} == {
        each["spend"]["sampling"]["sampling"] for each in NAMES["samplings"]
    }
    assert {spend["part"]["family"] for spend in spends if spend["part"]} == {"sex"}


# ledgers


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_stands_where_it_stood(shared: Path, name: str) -> None:
    kept = read(shared / f"ledgers/{name}.status.json")
    with Ledger.open(shared / f"ledgers/{name}.ledger") as ledger:
        status = ledger.status()
    for field, value in kept.items():
        found = getattr(status, field.replace("reserve", "selection_delta"))  # its name since 0.2
        if field in ("period", "period_spent"):
            assert (found is None) == (value is None)  # they go with the calendar
        elif isinstance(value, float):
            assert math.isclose(found, value, rel_tol=CLOSE), field
        else:
            assert (str(found) if isinstance(found, Fraction) else found) == value, field


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_replays_to_its_history(shared: Path, name: str) -> None:
    kept = read(shared / f"ledgers/{name}.history.json")["entries"]
    with Ledger.open(shared / f"ledgers/{name}.ledger") as ledger:
        entries = ledger.history()
    assert len(entries) == len(kept)
    for entry, held in zip(entries, kept, strict=True):
        assert entry.spends == tuple(Spend.from_json(spend) for spend in held.pop("spends"))
        assert entry.time.isoformat() == held.pop("time")
        assert entry.software == "sourdine 0.1.0"
        for field, value in held.items():
            found = getattr(entry, field)
            assert (str(found) if isinstance(found, Fraction) else found) == value, field


@pytest.mark.parametrize("name", [name for name in LEDGERS if name != "backup"])
def test_a_ledger_can_be_charged_again(own: Path, name: str) -> None:
    entries = read(own / f"ledgers/{name}.history.json")["entries"]
    spends = [Spend.from_json(each) for each in entries[0]["spends"]]
    with Ledger.open(own / f"ledgers/{name}.ledger") as ledger:
        before = ledger.status()
        receipt = ledger.charge(*spends, purpose="once more")
        after = ledger.status()
        assert receipt.number == after.blocks == before.blocks + 1
        assert after.spent == before.spent + receipt.price
        assert receipt.price > 0
        assert ledger.history()[-1].spends == tuple(spends)


def test_a_backup_is_still_none(own: Path) -> None:
    with Ledger.open(own / "ledgers/backup.ledger") as ledger:
        assert ledger.is_backup
        with pytest.raises(LedgerError, match="backup"):
            ledger.charge(*ledger.history()[0].spends, purpose="once more")


def test_an_export_can_be_forecast_from(shared: Path) -> None:
    words = ("ledger", "forecast", shared / "ledgers/zcdp.ledger", "--spends")
    told = json.loads(run(*words, shared / "ledgers/zcdp.history.json", "--json"))
    spent = Fraction(read(shared / "ledgers/zcdp.status.json")["spent"])
    assert math.isclose(Fraction(told["price"]), spent, rel_tol=CLOSE)


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_is_verified(shared: Path, ledgers: dict[str, Ledger], name: str) -> None:
    path = shared / name
    certificate = Certificate.from_json(path.read_text(encoding="utf-8"))
    recorded = "example" not in name  # a charge may be recorded without what its noise rests on
    assert certificate.verify(ledgers[certificate.ledger]) == (() if recorded else ("secure", "declared"))
    kept = read(path)
    assert certificate.spends == tuple(map(Spend.from_json, kept["spends"]))
    assert certificate.epsilon == kept["epsilon"]
    for file, digest in certificate.digests.items():
        assert hashlib.sha256((path.parent / file).read_bytes()).hexdigest() == digest


# tables


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_a_specification_can_be_read_and_planned(shared: Path, name: str) -> None:
    kept = read(shared / f"tables/{name}.plan.json")
    told = json.loads(run("plan", shared / f"tables/{name}.toml", "--json"))
    for field in ("epsilon", "delta", "unit", "neighbours", "confidence"):
        assert told[field] == kept[field], field
    asked = [(each["query"], each["statistic"], each["measure"]) for each in kept["forecasts"]]
    assert [(each["query"], each["statistic"], each["measure"]) for each in told["forecasts"]] == asked
    if kept["ledger"]["price"] is not None:  # for what it cost, or less
        assert Fraction(told["ledger"]["price"]) <= Fraction(kept["ledger"]["price"]) * (1 + Fraction(CLOSE))


@pytest.mark.parametrize("name", RELEASES)
def test_a_specification_can_be_released_again(own: Path, name: str) -> None:
    stem = name.removesuffix("-release")
    words = ("release", own / f"tables/{stem}.toml", "-o", own / "again", "--no-report", "--json")
    told = json.loads(run(*words))
    kept = read(own / f"tables/{name}/certificate.json")
    assert told["epsilon"] <= kept["epsilon"] * (1 + CLOSE)
    asked, answered = (
        {(each["query"], each["statistic"]) for each in read(folder / "release.json")["answers"]}
        for folder in (own / "tables" / name, own / "again")
    )
    assert answered == asked


@pytest.mark.parametrize("name", RELEASES)
def test_a_record_is_read_back(shared: Path, name: str) -> None:
    text = (shared / f"tables/{name}/release.json").read_text(encoding="utf-8")
    kept, record = json.loads(text), Record.from_json(text)
    assert record.payment == read(shared / f"tables/{name}/certificate.json")["fingerprint"]
    assert (str(record.spent), str(record.limit)) == (kept["spent"], kept["limit"])
    assert record.answers.confidence == kept["confidence"]
    for answer, held in zip(record.answers.each, kept["answers"], strict=True):
        for field in ("query", "statistic", "kind", "measure"):
            assert getattr(answer, field) == held[field]
        assert answer.keys == tuple(map(tuple, held["keys"]))
        for end in ("value", "lower", "upper"):
            found = [None if math.isnan(x) else x for x in getattr(answer.estimate, end).tolist()]
            assert found == held[end]
    assert Record.from_json(record.to_json()).specification == record.specification


@pytest.mark.parametrize("name", RELEASES)
def test_a_report_can_be_made_of_a_record(shared: Path, tmp_path: Path, name: str) -> None:
    run("report", shared / f"tables/{name}", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for each in read(shared / f"tables/{name}/release.json")["answers"]:
        assert each["query"] in page


def test_bounds_that_were_paid_for_can_be_declared(shared: Path, tmp_path: Path) -> None:
    kept = read(shared / "tables/bounds.json")
    text = (shared / "tables/everything.toml").read_text(encoding="utf-8")
    before, _, rest = text.partition("[columns.salary]")
    after = rest[rest.index("[columns.") :]
    (tmp_path / "people.toml").write_text(f"{before}{kept['block']}\n{after}", encoding="utf-8")
    with pytest.warns(OldWord, match=r"'queries\.at' is called 'queries\.levels' now"):
        salary = Specification.load(tmp_path / "people.toml").columns["salary"]
    assert isinstance(salary, dict)
    assert salary["upper"] == kept["upper"]


# answers that are private where they come from


@pytest.mark.parametrize("name", QUESTIONS)
def test_reports_count_and_say_what_they_said(shared: Path, tmp_path: Path, name: str) -> None:
    here, counts = shared / "local", tmp_path / "counts.json"
    kept = read(here / f"{name}.estimate.json")
    words = ("local", "estimate", here / f"{name}.json")
    question = Question.from_json(read(here / f"{name}.json"))
    told = json.loads(run(*words, here / f"{name}.reports.txt", "--counts", counts, "--json"))
    same_estimate(told, kept, question)
    assert read(counts) == read(here / f"{name}.counts.json")
    of_counts = json.loads(run(*words, here / f"{name}.counts.json", "--json"))
    assert all(each in told["quality"] for each in of_counts["quality"])  # some tests need the reports
    assert of_counts | {"quality": []} == told | {"quality": []}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_device_reports_the_same_for_ever(shared: Path, tmp_path: Path, name: str) -> None:
    """Another report on the same answer would cost its epsilon again."""
    here, made = shared / "local", tmp_path / "reports.txt"
    answers = "answers.txt" if read(here / f"{name}.json")["labels"] else "numbers.txt"
    question, kept = here / f"{name}.json", here / f"{name}.device.txt"
    run("local", "encode", question, here / answers, "-o", made, "--secret", here / "device.key")
    assert made.read_bytes() == kept.read_bytes()


@pytest.mark.parametrize("name", [*ASKED, "local/chosen", "rappor/pages", "rappor/once"])
def test_a_question_keeps_its_fingerprint(name: str) -> None:
    kept = read(KEPT / f"{name}.json")
    question = Question.from_json(kept)
    assert question.fingerprint == kept["fingerprint"]
    assert list(question.labels) == kept["labels"]
    assert Question.from_json(json.loads(json.dumps(question.to_json()))) == question


@pytest.mark.parametrize("name", DECODED)
def test_words_are_decoded_as_they_were(shared: Path, tmp_path: Path, name: str) -> None:
    here, (stem, decoder) = shared / "rappor", name.split(".")
    params, reports = {
        "pages": ("pages.json", "reports.txt"),
        "once": ("once.json", "once.txt"),
        "params": ("params.csv", "reports.csv"),
    }[stem]
    kept = read(here / f"{name}.json")
    if decoder == "non-negative":  # whose errors are found by drawing
        kept["words"] = [
            {field: each[field] for field in ("word", "share", "count")} for each in kept["words"]
        ]
    kept = without_ends_of_found(kept)
    words = ("local", "rappor", "decode", here / params)
    listed = ("--candidates", here / "candidates.txt", "--decoder", decoder, "--json")
    # sums over reports are in single precision, whose last digits hang on the processor
    same(json.loads(run(*words, here / reports, *listed)), kept, 1e-4 if decoder == "em" else 1e-6)
    if decoder != "em":  # which needs whole reports
        counts = here / f"{stem}.counts{Path(params).suffix}"
        same(json.loads(run(*words, counts, *listed)), kept)


def test_files_of_google_are_read_and_written_as_they_were(shared: Path, tmp_path: Path) -> None:
    here = shared / "rappor"
    words = ("local", "rappor", "decode", here / "params.csv", here / "reports.csv")
    kept = ("--counts", tmp_path / "c.csv", "--results", tmp_path / "r.csv", "--keep-map", tmp_path / "m.csv")
    same(
        json.loads(run(*words, "--map", here / "map.csv", *kept, "--json")),
        without_ends_of_found(read(here / "params.least-squares.json")),
    )
    assert (tmp_path / "c.csv").read_bytes() == (here / "params.counts.csv").read_bytes()
    assert (tmp_path / "m.csv").read_bytes() == (here / "map.csv").read_bytes()
    found, held = (
        [line.split(",")[0] for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (tmp_path / "r.csv", here / "results.csv")
    )
    assert found == held


def test_permanent_responses_stay() -> None:
    """Another one to the same word would tell as much again."""
    for kept in read(KEPT / "rappor/devices.json"):
        oracle = Mechanism.from_json(kept["oracle"])
        device = Device(oracle=oracle, secret=bytes.fromhex(kept["secret"]), purpose=kept["purpose"])  # type: ignore[arg-type]
        assert device.cohort == kept["cohort"]
        for value, held in kept["permanent"]:
            assert device.permanent(value).tobytes().hex() == held


# a cleaned table


@pytest.mark.parametrize(("folder", "told"), [("paid", "paid"), ("unpaid", "each")])
def test_a_cleaned_table_says_what_it_said(shared: Path, folder: str, told: str) -> None:
    here = shared / "cleaner" / folder
    cleaner = Cleaner.from_json(read(here / "cleaning.json"))
    kept = read(shared / f"cleaner/{told}.json")
    assert str(cleaner.total) == kept["price"]
    assert Cleaner.from_json(json.loads(json.dumps(cleaner.to_json()))).spends == cleaner.spends
    made = cleaner.estimates(here / "people.csv")
    for name, held in kept["columns"].items():
        same(made[name].value.tolist(), held["corrected"])
        ends = np.stack([made[name].lower, made[name].upper], axis=-1).tolist()
        if held["statistic"] == "shares":  # whose intervals did not hold as often as they said
            odds = math.exp(Fraction(held["epsilon"]))
            whole = odds + len(ends) - 1
            channel = Channel(odds / whole, 1 / whole)
            wanted = [ends_of(channel, kept["records"], share, 0.05) for share in held["corrected"]]
            assert np.array(ends) == pytest.approx(np.array(wanted))
        else:
            same(ends, list(map(list, zip(held["lower"], held["upper"], strict=True))))


def test_a_table_can_be_cleaned_again(own: Path) -> None:
    here = own / "cleaner"
    words = ("local", "clean", here / "people.csv", "--spec", here / "clean.toml", "--no-report", "--json")
    told = json.loads(run(*words, "--ledger", own / "ledgers/pure.ledger", "-o", own / "again"))
    assert told["price"] == read(here / "paid.json")["price"]
    assert told["records"] == 150


# training


@pytest.fixture
def training() -> Any:
    """The runs, which need torch."""
    return importlib.import_module("tests.golden.training_0_1")


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_training_goes_on_paid_once(own: Path, training: Any, name: str) -> None:
    ledger = own / f"ledgers/{training.RUNS[name]['ledger']}.ledger"
    before = blocks(ledger)
    trained = training.train(name, own / f"training/{name}.run", own / "ledgers")
    assert trained.resumed
    assert trained.history[-1].step == training.STEPS
    assert blocks(ledger) == before


def blocks(ledger: Path) -> int:
    with Ledger.open(ledger) as opened:
        return opened.status().blocks


def test_a_finished_training_gives_its_model_again(own: Path, training: Any) -> None:
    trained = training.train("plain", own / "training/finished.run", own / "ledgers")
    assert trained.resumed
    card = read(own / "training/card.json")
    kept = Certificate.from_json(json.dumps(card["certificate"]))
    assert trained.certificate(own / "ledgers/renyi.ledger") == kept
    assert trained.certificate(own / "ledgers/renyi.ledger").verify(own / "ledgers/renyi.ledger") == ()


def test_a_finished_sweep_is_not_run_again(own: Path, training: Any) -> None:
    swept = training.sweep(own / "training/sweep.journal", own / "ledgers")
    assert swept.before == len(swept.runs) == 4


def test_a_model_is_a_plain_state_of_torch(shared: Path) -> None:
    torch = importlib.import_module("torch")
    state = torch.load(shared / "training/model/model.pt", weights_only=True)
    assert [tuple(value.shape) for value in state.values()] == [(2, 12), (2,)]
