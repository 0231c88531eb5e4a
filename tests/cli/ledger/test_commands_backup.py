import json
from fractions import Fraction
from pathlib import Path

from typer.testing import CliRunner

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.release import Release
from sourdine.cli import app
from tests.campaigns.ledger.crash import new_ledger, one_spend


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, result.stderr


def test_a_backup_says_what_it_is(tmp_path: Path) -> None:
    path, kept = tmp_path / "survey.ledger", tmp_path / "kept.ledger"
    with new_ledger(path, Fraction(1)) as ledger:
        ledger.charge(one_spend(), purpose="p")
    code, out, _ = run("ledger", "backup", path, kept)
    assert code == 0
    assert out.startswith("1 charge kept in ")
    assert "this file pays for nothing" in run("ledger", "status", kept)[1]
    assert "this file pays for nothing" not in run("ledger", "status", path)[1]
    assert run("ledger", "history", kept)[0] == 0
    assert Ledger.open(kept).is_backup
    code, out, _ = run("ledger", "backup", path, tmp_path / "second.ledger", "--json")
    told = {"ledger": str(path), "backup": str(tmp_path / "second.ledger"), "blocks": 1}
    assert (code, json.loads(out)) == (0, told)
    code, out, err = run("ledger", "backup", path, kept)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "sourdine ledger backup survey.ledger" in " ".join(run("ledger", "backup", "--help")[1].split())


def test_verify_names_what_the_ledger_cannot_confirm(tmp_path: Path) -> None:
    spend, paper = one_spend(), tmp_path / "certificate.json"
    ledger = new_ledger(tmp_path / "survey.ledger", Fraction(1))
    declared = {"upper": "10"}
    for receipt, stated, told in (
        (ledger.charge(spend, purpose="p"), None, True),
        (ledger.charge(spend, purpose="p", secure=True, declared=declared), declared, False),
    ):
        release = Release(values=1, intervals=None, spends=(spend,), receipt=receipt)
        paper.write_text(release.certificate(ledger, stated).to_json())
        code, out, _ = run("certificate", "verify", paper, "--ledger", ledger.path)
        assert code == 0
        assert ("not confirmed by the ledger: secure, declared." in out) is told
