"""How the files in `0.2` were made: by lasting names, once. No test runs this.

    python -m tests.golden.make_0_2 FOLDER

What a mechanism loses is kept in `0.1`; here is what it is called since, and questions of format 2.
"""

import hashlib
import json
import sys
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from sourdine.accounting import Spend
from sourdine.cli import app
from sourdine.core.mechanism import Mechanism
from sourdine.local.question import Question

FIRST = Path(__file__).parent / "0.1"
SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
QUESTIONS = ("kary", "optimal-unary", "local-hashing", "piecewise", "basic-rappor")


def run(*words: object) -> str:
    """A command, as somebody types it."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exit_code:
        raise SystemExit(f"sourdine {' '.join(map(str, words))}: {done.output}") from done.exception
    return done.stdout


def keep(path: Path, content: object) -> None:
    """Something as JSON in a file."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def make_names(place: Path) -> None:
    """Every mechanism and sampling by its name, each beside what version 0.1 wrote."""
    held = json.loads((FIRST / "names.json").read_text(encoding="utf-8"))
    mechanisms = [
        {
            "first": each["mechanism"],
            "written": Mechanism.from_json(each["mechanism"]).to_json(),
            **({"identity": each["identity"]} if "identity" in each else {}),
        }
        for each in held["mechanisms"]
    ]
    samplings = [
        {"first": each["spend"], "written": Spend.from_json(each["spend"]).to_json()}
        for each in held["samplings"]
    ]
    keep(place, {"mechanisms": mechanisms, "samplings": samplings})


def make_questions(place: Path) -> None:
    """Questions of format 2, with reports to them and what those say."""
    (place / "device.key").write_bytes((FIRST / "local" / "device.key").read_bytes())
    for name in QUESTIONS:
        first = json.loads((FIRST / "local" / f"{name}.json").read_text(encoding="utf-8"))
        question = replace(Question.from_json(first), format=2)
        keep(place / f"{name}.json", question.to_json())
        answers = "answers.txt" if question.labels else "numbers.txt"
        if not (place / answers).exists():
            (place / answers).write_bytes((FIRST / "local" / answers).read_bytes())
        with chdir(place):
            encode = ("local", "encode", f"{name}.json", answers, "-o")
            run(*encode, f"{name}.reports.txt")
            run(*encode, f"{name}.device.txt", "--secret", "device.key")
            words = ("local", "estimate", f"{name}.json", f"{name}.reports.txt", "--json")
            keep(Path(f"{name}.estimate.json"), json.loads(run(*words, "--counts", f"{name}.counts.json")))


def make_signed(place: Path) -> None:
    """A release that two people signed, in every kind of file but a page, with its ledger and their keys."""
    with chdir(place):
        for name in ("people.csv", "people.toml"):
            (place / name).write_bytes((SAMPLES / name).read_bytes())
        run("ledger", "create", "people.ledger", "--epsilon", 3)
        formats = ("--format", "csv", "--format", "json", "--format", "parquet")
        run("release", "people.toml", "-o", "published", *formats, "--no-report")
        for name, signer in (("office", "Privacy office, J. Doe"), ("board", "Büro des Vorstands")):
            run("certificate", "keys", name)
            run("certificate", "sign", "published", "--key", f"{name}.key", "--name", signer)
            (place / f"{name}.key").unlink()
        for name in ("people.csv", "people.toml"):
            (place / name).unlink()


def make(folder: Path) -> None:
    """All of it, in a new folder, and the list of what is there."""
    for name in ("local", "signed"):
        (folder / name).mkdir(parents=True)
    make_names(folder / "names.json")
    make_questions(folder / "local")
    make_signed(folder / "signed")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in files
    ]
    (folder / "MANIFEST").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
