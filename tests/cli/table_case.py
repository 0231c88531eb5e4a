"""A small table, its specification and its ledger, for the verbs that publish."""

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from sourdine.accounting.ledger import Ledger
from sourdine.cli import app

SPECIFICATION = """\
[table]
source = "people.csv"
size = 300

[privacy]
unit = "person"
ledger = "people.ledger"
epsilon = 0.5

[columns.age]
type = "integer"
lower = 0
upper = 120

[columns.sex]
type = "category"
keys = ["f", "m"]

[[queries]]
name = "people"
ask = ["count"]
by = ["sex"]

[[queries]]
name = "ages"
ask = [{ mean = "age" }]
"""


@dataclass(frozen=True)
class Case:
    """A folder with a table of 300 people, 100 of them women of age 30, and 200 men of age 60."""

    folder: Path
    spec: Path
    ledger: Path

    def change(self, old: str, new: str) -> None:
        """Write something else into the specification."""
        text = self.spec.read_text()
        assert old in text
        self.spec.write_text(text.replace(old, new))

    def spent(self) -> str:
        """What the ledger has paid."""
        with Ledger.open(self.ledger) as ledger:
            return str(ledger.status().spent)


def build(folder: Path, epsilon: str = "1") -> Case:
    """The case in a folder, with a ledger of this budget."""
    rows = "30,f\n" * 100 + "60,m\n" * 200
    (folder / "people.csv").write_text("age,sex\n" + rows)
    (folder / "people.toml").write_text(SPECIFICATION)
    made = Case(folder, folder / "people.toml", folder / "people.ledger")
    assert run("ledger", "create", made.ledger, "--epsilon", epsilon)[0] == 0
    return made


def run(*words: object) -> tuple[int, str, str]:
    """The exit code of a command, its output and its complaint."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, result.stderr
