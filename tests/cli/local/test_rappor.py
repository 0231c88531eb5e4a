"""Words, reports, candidates and rehearsals of RAPPOR on the command line."""

import csv
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.cli.local.rappor.options import read_question
from sourdine.local.rappor import Device, OneTimeRappor, Rappor
from sourdine.local.rappor.files import read_params, read_reports, read_results
from sourdine.local.rappor.rappor import BloomOracle
from tests.cli.table_case import run

NOISE = ("--f", "0.25", "--p", "0.25", "--q", "0.75", "--cohorts", "4", "--bits", "32")
PEOPLE = {"a.org": 3000, "b.org": 2000, "c.org": 1000}
CANDIDATES = [*PEOPLE, "d.org", "e.org"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    words = "".join(f"{word}\n" * count for word, count in PEOPLE.items())
    (tmp_path / "words.txt").write_text(words)
    (tmp_path / "candidates.txt").write_text("\n".join(CANDIDATES) + "\n")
    return tmp_path


def rappor(*words: object) -> tuple[int, str, str]:
    code, out, err = run("local", "rappor", *words)
    return code, out, err


def encode(place: Path, params: str = "spec.json", reports: str = "reports.txt") -> tuple[Path, Path]:
    """Parameters and reports in files of these names."""
    spec, output = place / params, place / reports
    given = () if spec.exists() else NOISE
    code, out, err = rappor("encode", spec, place / "words.txt", "-o", output, *given)
    assert (code, err) == (0, "")
    assert "6,000 reports" in out
    return spec, output


def decode(place: Path, *words: object) -> dict[str, object]:
    code, out, err = rappor("decode", *words, "--json")
    assert (code, err) == (0, "")
    found: dict[str, object] = json.loads(out)
    return found


def shares(found: dict[str, object]) -> dict[str, float]:
    words = found["words"]
    assert isinstance(words, list)
    return {each["word"]: each["share"] for each in words if each["found"]}


@pytest.mark.parametrize("decoder", ["least-squares", "lasso", "non-negative", "em"])
@pytest.mark.parametrize(("params", "reports"), [("spec.json", "reports.txt"), ("params.csv", "reports.csv")])
def test_words_become_reports_become_words(place: Path, decoder: str, params: str, reports: str) -> None:
    spec, sent = encode(place, params, reports)
    found = decode(place, spec, sent, "--candidates", place / "candidates.txt", "--decoder", decoder)
    assert found["reports"] == 6000
    told = shares(found)
    for word, count in PEOPLE.items():
        assert told[word] == pytest.approx(count / 6000, abs=0.1)  # seven standard errors


def test_a_file_of_googles_stands_for_the_question_it_stood_for() -> None:
    """Reports that version 0.1 wrote by such a file carry this fingerprint."""
    kept = Path(__file__).parents[2] / "golden" / "0.1" / "rappor" / "params.csv"
    assert read_question(kept).fingerprint == "de262e4dcb75f060"


def test_everything_passes_through_googles_files(place: Path) -> None:
    spec, sent = encode(place, "params.csv", "reports.csv")
    oracle = read_params(spec)
    assert oracle == Rappor(
        bits=32, hashes=2, cohorts=4, f=Fraction(1, 4), p=Fraction(1, 4), q=Fraction(3, 4)
    )
    reports = read_reports(sent, oracle)
    assert reports.clients[:2] == ("1", "2")
    kept = ("--counts", place / "counts.csv", "--keep-map", place / "map.csv")
    first = decode(place, spec, sent, "--candidates", place / "candidates.txt", *kept)
    table = [
        [int(cell) for cell in row] for row in csv.reader((place / "counts.csv").read_text().splitlines())
    ]
    assert sum(row[0] for row in table) == 6000
    assert np.array_equal(np.ravel(table), oracle.tally(reports.rows).sums)
    results = ("--results", place / "results.csv")
    second = decode(place, spec, place / "counts.csv", "--map", place / "map.csv", *results)
    assert second["words"] == first["words"]
    assert [each.string for each in read_results(place / "results.csv")] == list(shares(second))


def test_counts_of_ours_are_kept_and_added(place: Path) -> None:
    spec, monday = encode(place)
    _, tuesday = encode(place, reports="tuesday.txt")
    words = ("--candidates", place / "candidates.txt")
    decode(place, spec, monday, *words, "--counts", place / "monday.json")
    added = decode(place, spec, place / "monday.json", tuesday, *words)
    assert added == decode(place, spec, monday, tuesday, *words)
    assert added["reports"] == 12_000


def test_a_secret_is_one_device(place: Path) -> None:
    secret = bytes(range(32))
    (place / "device.key").write_bytes(secret)
    (place / "words.txt").write_text("a.org\na.org\nb.org\n")
    spec, out = place / "params.csv", place / "device.csv"
    words = ("encode", spec, place / "words.txt", "-o", out, "--secret", place / "device.key")
    assert rappor(*words, "--f", "0.5", "--once")[0] == 0
    oracle = read_params(spec)
    assert isinstance(oracle, OneTimeRappor)
    reports = read_reports(out, oracle)
    assert reports.clients == ("1", "1", "1")
    device = Device(oracle=oracle, secret=secret, purpose="words")
    assert np.array_equal(reports.rows, [device.report(word) for word in ("a.org", "a.org", "b.org")])


def test_parameters_come_from_epsilons(place: Path) -> None:
    (place / "words.txt").write_text("a.org\n")

    def cost(name: str, *given: str) -> tuple[float, float | None]:
        spec, out = place / f"{name}.json", place / f"{name}.txt"
        code, told, err = rappor("encode", spec, place / "words.txt", "-o", out, *given, "--json")
        assert (code, err) == (0, "")
        held = json.loads(told)
        oracle = BloomOracle.from_json(json.loads(spec.read_text())["oracle"])
        assert oracle.epsilon_one == held["epsilon_one"]
        return held["epsilon_one"], held["epsilon_infinity"]

    one, forever = cost("both", "--epsilon", "1", "--epsilon-infinity", "4")
    assert 0.99 < one <= 1
    assert forever is not None
    assert 3.99 < forever <= 4
    one, forever = cost("endless", "--epsilon", "1", "--epsilon-infinity", "inf")
    assert 0.99 < one <= 1
    assert forever is None
    one, forever = cost("fresh", "--no-permanent", "--p", "0.5", "--q", "0.75", "--hashes", "1")
    assert one == pytest.approx(math.log(3))  # as the thesis has it
    assert forever is None
    assert cost("within", "--no-permanent", "--epsilon", "2") == (pytest.approx(2, abs=1e-4), None)
    one, forever = cost("once", "--epsilon", "2", "--once")
    assert one == forever
    assert 1.99 < one <= 2


def test_a_rehearsal_compares_decoders_and_keeps_files(tmp_path: Path) -> None:
    words = ("simulate", "--people", "20000", "--words", "10", "--absent", "10", "--law", "geometric")
    given = ("--epsilon", "4", "--epsilon-infinity", "8", "--cohorts", "8")
    code, out, err = rappor(*words, *given, "-o", tmp_path / "made", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert [each["decoder"] for each in told["decoders"]] == ["least-squares", "lasso", "non-negative"]
    assert all(each["true"] >= 5 and each["false"] <= 4 for each in told["decoders"])
    made = tmp_path / "made"
    names = {"params.csv", "counts.csv", "map.csv", "results.csv", "true.csv"}
    assert {path.name for path in made.iterdir()} == names
    again = decode(tmp_path, made / "params.csv", made / "counts.csv", "--map", made / "map.csv")
    assert list(shares(again)) == [each.string for each in read_results(made / "results.csv")]
    truth = [float(row[1]) for row in list(csv.reader((made / "true.csv").read_text().splitlines()))[1:]]
    assert sum(truth) == pytest.approx(1)
    assert truth[10:] == [0.0] * 10


def test_a_rehearsal_speaks_to_people() -> None:
    words = ("simulate", "--people", "3000", "--words", "3", "--absent", "2", "--decoder", "em")
    code, out, err = rappor(*words, "--once", "--epsilon", "6")
    assert (code, err) == (0, "")
    assert "3,000 made-up people" in out
    assert "at most epsilon 6" in out
    first, again, other = (rappor(*words, "--seed", seed, "--json")[1] for seed in ("1", "1", "2"))
    assert first == again != other


@pytest.mark.parametrize("verb", ["encode", "decode", "simulate"])
def test_help_has_an_example(verb: str) -> None:
    code, out, _ = rappor(verb, "--help")
    assert code == 0
    assert f"sourdine local rappor {verb}" in " ".join(out.split())


def refused(place: Path, said: str, *words: object) -> None:
    """One sentence, and no file more or changed."""
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    code, out, err = rappor(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        (("--f", "0.5"), "not stated in full"),
        (("--f", "0.5", "--p", "0.8", "--q", "0.75"), "--q above --p"),
        (("--f", "2", "--p", "0.5", "--q", "0.75"), "'f'"),
        (("--epsilon", "1"), "--epsilon-infinity"),
        (("--epsilon", "1", "--epsilon-infinity", "1/2"), "must be above --epsilon"),
        (("--epsilon", "1", "--epsilon-infinity", "4", "--once"), "--once"),
        (("--epsilon", "1", "--once", "--f", "0.5"), "Both were given"),
        (("--once", "--f", "0.5", "--p", "0.1"), "neither --p nor --q"),
        (("--no-permanent", "--once", "--epsilon", "1"), "leave out --once"),
        (("--no-permanent", "--f", "0.5"), "leave out --once"),
        (("--epsilon", "1", "--epsilon-infinity", "4", "--bits", "1000"), "'bits'"),
        (("--f", "1/3", "--p", "0.5", "--q", "0.75"), "decimals without end"),
        ((), "There is no file"),
    ],
)
def test_bad_noise_is_one_sentence(place: Path, noise: tuple[str, ...], said: str) -> None:
    refused(place, said, "encode", place / "params.csv", place / "words.txt", "-o", place / "r.csv", *noise)


@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_reports_of_other_parameters_are_refused(place: Path, kind: str) -> None:
    params = "spec.json" if kind == "txt" else "params.csv"
    _, sent = encode(place, params, f"reports.{kind}")
    other = place / f"other{Path(params).suffix}"
    noise = ("--f", "0.25", "--p", "0.25", "--q", "0.75", "--cohorts", "4", "--bits", "64")
    assert rappor("encode", other, place / "words.txt", "-o", place / f"new.{kind}", *noise)[0] == 0
    words = ("--candidates", place / "candidates.txt", "--results", place / "results.csv")
    said = "another specification" if kind == "txt" else "other parameters"
    refused(place, said, "decode", other, sent, *words)
    if kind == "csv":
        refused(place, said, "decode", other, place / f"new.{kind}", sent, *words)
        return
    both = ("decode", other, place / f"new.{kind}", sent, *words[:2], "--json")
    assert json.loads(rappor(*both)[1])["set_apart"] == {"another-question": 6000}


def test_counts_that_are_cut_short_are_refused(place: Path) -> None:
    spec, sent = encode(place, "params.csv", "reports.csv")
    words = ("--candidates", place / "candidates.txt")
    for name in ("counts.csv", "counts.json"):
        decode(place, spec, sent, *words, "--counts", place / name)
    lines = (place / "counts.csv").read_text().splitlines()
    (place / "fewer.csv").write_text("\n".join(lines[:-1]) + "\n")
    (place / "shorter.csv").write_text("\n".join([*lines[:-1], lines[-1][:20]]) + "\n")
    held = json.loads((place / "counts.json").read_text())
    (place / "fewer.json").write_text(json.dumps({**held, "sums": held["sums"][:-33]}))
    (place / "more.json").write_text(json.dumps({**held, "reports": held["reports"] + 1}))
    (place / "cut.json").write_text((place / "counts.json").read_text()[:100])
    (place / "foreign.json").write_text(json.dumps({**held, "counts": "0" * 16}))
    for name, said in {
        "fewer.csv": "3 lines for 4 cohorts",
        "shorter.csv": "Line 4",
        "fewer.json": "do not add up",
        "more.json": "do not add up",
        "cut.json": "cut short",
        "foreign.json": "other parameters",
    }.items():
        refused(place, said, "decode", spec, place / name, *words, "--results", place / "results.csv")
    (place / "part.txt").write_bytes(b"")
    refused(place, "empty", "decode", spec, place / "part.txt", *words)
    refused(place, "whole reports", "decode", spec, place / "counts.csv", *words, "--decoder", "em")


def test_a_wrong_line_is_set_apart_and_named_by_its_number(place: Path) -> None:
    spec, sent = encode(place)
    lines = sent.read_bytes().splitlines(keepends=True)
    (place / "bent.txt").write_bytes(b"".join([*lines[:4321], lines[4321][:-3] + b"xx\n", *lines[4322:]]))
    words = ("--candidates", place / "candidates.txt")
    (place / "cut.txt").write_bytes(b"".join(lines)[:-5])
    for name, line in {"bent.txt": "4,322", "cut.txt": "6,000"}.items():
        code, out, err = rappor("decode", spec, place / name, *words)
        assert (code, "5,999 reports" in out.replace("\n", " ")) == (0, True)
        assert f"1 line, damaged (the first is line {line}" in err.replace("\n", " ")
        told = json.loads(rappor("decode", spec, place / name, *words, "--json")[1])
        assert (told["reports"], told["set_apart"]) == (5999, {"damaged": 1})


def test_candidates_must_be_in_the_map(place: Path) -> None:
    spec, sent = encode(place)
    decode(place, spec, sent, "--candidates", place / "candidates.txt", "--keep-map", place / "map.csv")
    (place / "more.txt").write_text("a.org\nz.org\n")
    some = decode(place, spec, sent, "--map", place / "map.csv", "--candidates", place / "candidates.txt")
    assert len(some["words"]) == 5  # type: ignore[arg-type]
    words = ("decode", spec, sent, "--map", place / "map.csv", "--results", place / "results.csv")
    refused(place, "'z.org' is not in the map", *words, "--candidates", place / "more.txt")
    text = (place / "map.csv").read_text().replace("a.org,", "a.org,9", 1)
    (place / "map.csv").write_text(text)
    refused(place, "line 1 of the map", *words)


def test_other_bad_requests_are_one_sentence(place: Path) -> None:
    spec, sent = encode(place)
    words = ("--candidates", place / "candidates.txt")
    refused(place, "nothing to look for", "decode", spec, sent)
    refused(place, "'decoder'", "decode", spec, sent, *words, "--decoder", "magic")
    refused(place, "'correction'", "decode", spec, sent, *words, "--correction", "none")
    refused(place, "'level'", "decode", spec, sent, *words, "--level", "0")
    results = ("--results", place / "results.csv", "--confidence", "0.9")
    refused(place, "95 %", "decode", spec, sent, *words, *results)
    refused(place, "not written over", "encode", spec, place / "words.txt", "-o", sent)
    refused(place, "not written over", "encode", spec, place / "words.txt", "-o", place / "r.txt", *NOISE)
    refused(place, "'law'", "simulate", "--law", "normal")
    refused(place, "'people'", "simulate", "--people", "0")
    other = place / "coffee.json"
    assert run("local", "spec", "coffee", "--epsilon", "1", "--categories", "3", "-o", other)[0] == 0
    refused(place, "not one of words", "encode", other, place / "words.txt", "-o", place / "r.txt")
    (place / "short.key").write_bytes(b"abc")
    secret = ("--secret", place / "short.key")
    refused(place, "'secret'", "encode", spec, place / "words.txt", "-o", place / "r.txt", *secret)


def test_nothing_is_written_over(place: Path) -> None:
    spec, sent = encode(place, "params.csv", "reports.csv")
    words = ("--candidates", place / "candidates.txt")
    for option, kept in (("--counts", sent), ("--results", words[1]), ("--keep-map", spec)):
        refused(place, "not written over", "decode", spec, sent, *words, option, kept)
    refused(place, "named twice", "decode", spec, sent, sent, *words)
    refused(place, "not written over", "simulate", "--people", "10", "-o", place)  # which holds a params.csv


def test_more_unlisted_words_than_reports_are_no_share(place: Path) -> None:
    _, sent = encode(place, "params.csv", "reports.csv")
    other = place / "other.csv"
    noise = ("--f", "0.5", "--p", "0.1", "--q", "0.2", *NOISE[6:])
    assert rappor("encode", other, place / "words.txt", "-o", place / "o.csv", *noise)[0] == 0
    code, out, _ = rappor("decode", other, sent, "--candidates", place / "candidates.txt")
    assert code == 0
    assert "nothing here is right" in " ".join(out.split())


def test_a_limit_needs_a_secret(place: Path) -> None:
    (place / "words.txt").write_text("a.org\nb.org\n")
    words = ("encode", place / "spec.json", place / "words.txt", "-o")
    told = rappor(*words, place / "a.txt", "--epsilon", "1", "--epsilon-infinity", "4")[1]
    assert "without a limit" in " ".join(told.split())
    (place / "device.key").write_bytes(bytes(range(32)))
    told = rappor(*words, place / "b.txt", "--secret", place / "device.key")[1]
    assert "Wrote" in told
    assert "without a limit" not in " ".join(told.split())
