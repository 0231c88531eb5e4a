"""Google's formats: examples written by hand, there and back, and every way to spoil them."""

import hashlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor import Device, OneTimeRappor, Rappor, files
from sourdine.local.rappor.decode import Candidates, DecodingTerms, Evidence, decode_by_least_squares
from sourdine.testing import SeededBits

SMALL = Rappor(bits=4, hashes=1, cohorts=2, f=Fraction(1, 2), p=Fraction(1, 2), q=Fraction(3, 4))


def test_params_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "params.csv"
    path.write_text("k,h,m,p,q,f\n32,2,64,0.5,0.75,0.6\n")
    read = files.read_params(path)
    assert read == Rappor(bits=32, hashes=2, cohorts=64, f=Fraction(3, 5), p=Fraction(1, 2), q=Fraction(3, 4))
    files.write_params(path, read)
    assert path.read_text() == "k,h,m,p,q,f\n32,2,64,0.5,0.75,0.6\n"
    path.write_text("k,h,m,p,q,f\r\n16,2,8,0.0,1.0,0.25\r\n")
    assert files.read_params(path) == OneTimeRappor(bits=16, hashes=2, cohorts=8, f=Fraction(1, 4))


@pytest.mark.parametrize("f", [0, 0.1, Fraction(1, 1 << 20), Fraction(7, 10)])
def test_params_lose_no_digit(tmp_path: Path, f: float) -> None:
    oracle = Rappor(bits=32, hashes=2, cohorts=64, f=f, p=0.3, q=Fraction("0.75"))
    files.write_params(tmp_path / "p.csv", oracle)
    assert files.read_params(tmp_path / "p.csv") == oracle
    assert files.read_params(tmp_path / "p.csv").fingerprint == oracle.fingerprint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("k,h,m,p,q\n32,2,64,0.5,0.75,0.6\n", "cannot be read"),
        ("k,h,m,p,q,f\n", "cannot be read"),
        ("k,h,m,p,q,f\n32,2,64,0.5,0.75,0.6\nextra\n", "cannot be read"),
        ("k,h,m,p,q,f\n32,2,64,0.5,0.75\n", "cannot be read"),
        ("k,h,m,p,q,f\n32,two,64,0.5,0.75,0.6\n", "no number"),
        ("k,h,m,p,q,f\n32,2,64,1/0,0.75,0.6\n", "no number"),
        ("k,h,m,p,q,f\n32,2,64,0.75,0.5,0.6\n", "'q'"),
        ("k,h,m,p,q,f\n32,2,64,0,1,0\n", "'f'"),
        ("", "cannot be read"),
    ],
)
def test_bad_params(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "params.csv"
    path.write_text(text)
    with pytest.raises(InvalidParameter, match=said):
        files.read_params(path)


def test_endless_decimals_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "params.csv"
    path.write_text("before")
    oracle = Rappor(bits=4, hashes=1, cohorts=2, f=Fraction(1, 3), p=Fraction(1, 2), q=Fraction(3, 4))
    with pytest.raises(InvalidParameter, match="'f'"):
        files.write_params(path, oracle)
    assert path.read_text() == "before"


def test_counts_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("10,1,2,3,4\n5,5,0,0,1\n")
    counts = files.read_counts(path, SMALL)
    assert (counts.reports, counts.fingerprint) == (15, SMALL.fingerprint)
    assert SMALL.table(counts).tolist() == [[10, 1, 2, 3, 4], [5, 5, 0, 0, 1]]
    files.write_counts(path, SMALL, counts)
    assert path.read_text() == "10,1,2,3,4\n5,5,0,0,1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10,1,2,3,4\n", "1 lines for 2 cohorts"),
        ("10,1,2,3,4\n5,5,0\n", "Line 2 .* cut short"),
        ("10,1,2,3,4\n5,5,0,0,1,9\n", "Line 2"),
        ("10,1,2,3,-4\n5,5,0,0,1\n", "Line 1"),
        ("10,1,2,3,4.5\n5,5,0,0,1\n", "Line 1"),
        ("10,1,2,3,4\n5,6,0,0,1\n", "Line 2 .* more ones than reports"),
        ("10,1,2,3,99999999999999999999\n5,6,0,0,1\n", "Line 1"),
    ],
)
def test_bad_counts(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(InvalidParameter, match=said):
        files.read_counts(path, SMALL)


def test_reports_by_hand_have_the_last_bit_first(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("client,cohort,bloom,prr,irr\nc1,0,0001,1001,0011\nc2,1,,,1000\n")
    reports = files.read_reports(path, SMALL)
    assert reports.clients == ("c1", "c2")
    assert SMALL.table(SMALL.tally(reports.rows)).tolist() == [[1, 1, 1, 0, 0], [1, 0, 0, 0, 1]]
    files.write_reports(path, SMALL, reports.clients, reports.rows)
    assert path.read_text() == "client,cohort,bloom,prr,irr\nc1,0,,,0011\nc2,1,,,1000\n"


def test_lives_of_simulated_reports_may_be_written(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    devices = [Device(oracle=SMALL, secret=bytes([i]) * 16) for i in range(3)]
    lives = [one.life("abc", SeededBits(1)) for one in devices]
    rows = np.array([one.report("abc", SeededBits(1)) for one in devices])
    files.write_reports(path, SMALL, ["a", "b", "c"], rows, lives=lives)
    first = path.read_text().splitlines()[1].split(",")
    place = hashlib.md5(bytes([0, 0, 0, lives[0].cohort]) + b"abc").digest()[0] % 4
    assert int(first[2], 2) == 1 << place
    assert first[3] == "".join("1" if bit else "0" for bit in reversed(lives[0].permanent.tolist()))
    assert files.read_reports(path, SMALL).rows.tolist() == rows.tolist()
    with pytest.raises(InvalidParameter, match="3 reports and 2 clients"):
        files.write_reports(path, SMALL, ["a", "b"], rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "do not begin"),
        ("c1,0,,,0011\n", "do not begin"),
        ("client,cohort,bloom,prr,irr\nc1,0,,,0011\nc2,0,,\n", "Line 3 .* cut short"),
        ("client,cohort,bloom,prr,irr\nc1,zero,,,0011\n", "Line 2 .* damaged"),
        ("client,cohort,bloom,prr,irr\nc1,0,,,0021\n", "Line 2 .* damaged"),
        ("client,cohort,bloom,prr,irr\nc1,0,,,00000011\n", "Line 2 .* other parameters: it has 8 bits"),
        ("client,cohort,bloom,prr,irr\nc1,2,,,0011\n", "Line 2 .* other parameters"),
    ],
)
def test_bad_reports(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "reports.csv"
    path.write_text(text)
    with pytest.raises(InvalidParameter, match=said):
        files.read_reports(path, SMALL)


def test_a_map_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    words = ["abc", 'with "quotes", and a comma', "naïve"]
    lines = []
    for word in words:
        places = [
            cohort * 4 + hashlib.md5(bytes([0, 0, 0, cohort]) + word.encode()).digest()[0] % 4 + 1
            for cohort in range(2)
        ]
        quoted = word if word.isalpha() else '"' + word.replace('"', '""') + '"'
        lines.append(f"{quoted},{places[0]},{places[1]}\r\n")
    files.write_map(path, Candidates.of(SMALL, words))
    assert path.read_bytes().decode() == "".join(lines)
    read = files.read_map(path, SMALL)
    assert read.words == tuple(words)
    assert read.hashed_by(SMALL)
    path.write_text("abc,1,5\n")
    foreign = files.read_map(path, SMALL)
    assert foreign.positions.tolist() == [[[0], [0]]]
    assert not foreign.hashed_by(SMALL)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abc,1,5\nxyz,1\n", "Line 2 .* cut short"),
        ("abc,1,5\nxyz,1,4\n", "line 2 .* outside its cohort"),
        ("abc,0,5\n", "line 1 .* outside its cohort"),
        ("abc,1,9\n", "line 1 .* outside its cohort"),
        ("abc,1,five\n", "Line 1"),
        ("abc,1,5\nabc,1,5\n", "'abc' is listed twice"),
        ("", "no candidates"),
    ],
)
def test_bad_maps(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "map.csv"
    path.write_text(text)
    with pytest.raises(InvalidParameter, match=said):
        files.read_map(path, SMALL)


def test_a_candidate_outside_the_map_is_refused(tmp_path: Path) -> None:
    known = Candidates.of(SMALL, ["abc", "xyz"])
    assert known.choose(["xyz"]).positions.tolist() == known.positions[1:].tolist()
    with pytest.raises(InvalidParameter, match="'new' is not in the map"):
        known.choose(["abc", "new"])


def test_results_there_and_back(tmp_path: Path) -> None:
    oracle = OneTimeRappor(bits=16, hashes=2, cohorts=4, f=Fraction(1, 2))
    rows = oracle.sample(np.array(["a", "b", "a"] * 3000), SeededBits(1))
    candidates = Candidates.of(oracle, ["a", "b", "c"])
    evidence = Evidence.of(oracle, oracle.tally(rows))
    decoding = decode_by_least_squares(evidence, candidates)
    path = tmp_path / "results.csv"
    files.write_results(path, decoding)
    assert path.read_text().splitlines()[0] == (
        "string,estimate,std_error,proportion,prop_std_error,prop_low_95,prop_high_95"
    )
    first, second = files.read_results(path)
    assert (first.string, second.string) == decoding.discoveries == ("a", "b")
    assert first.estimate == 9000 * first.proportion == float(decoding.counts[0])
    assert first.prop_low_95 < 2 / 3 < first.prop_high_95
    assert first.prop_high_95 - first.proportion == pytest.approx(1.959964 * first.prop_std_error)
    path.write_text(path.read_text() + "cut,1,2\n")
    with pytest.raises(InvalidParameter, match="Line 4"):
        files.read_results(path)
    path.write_text("string\n")
    with pytest.raises(InvalidParameter, match="do not begin"):
        files.read_results(path)
    wide = decode_by_least_squares(evidence, candidates, terms=DecodingTerms(confidence=0.9))
    with pytest.raises(InvalidParameter, match="95 %"):
        files.write_results(path, wide)


def test_no_word_of_the_results_is_a_formula(tmp_path: Path) -> None:
    words = ["=1+1", "@SUM(A1)"]
    oracle = Rappor(bits=32, hashes=2, cohorts=2, f=Fraction(1, 8), p=Fraction(1, 8), q=Fraction(7, 8))
    rows = oracle.encode(words, np.arange(4000) % 2, bits=SeededBits(3))
    evidence = Evidence.of(oracle, oracle.tally(rows))
    decoding = decode_by_least_squares(evidence, Candidates.of(oracle, words))
    files.write_results(tmp_path / "results.csv", decoding)
    lines = (tmp_path / "results.csv").read_text().splitlines()[1:]
    assert sorted(line.split(",")[0] for line in lines) == ["'=1+1", "'@SUM(A1)"]
    assert sorted(each.string for each in files.read_results(tmp_path / "results.csv")) == words


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "params.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParameter, match="no CSV in UTF-8"):
        files.read_params(path)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        files.read_params(tmp_path / "missing.csv")
