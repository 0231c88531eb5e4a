"""Ledgers on a server from the command line."""

import json
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.servers import Server
from sourdine.cli import app
from tests.cli.table_case import build


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def test_a_ledger_is_made_seen_moved_and_backed_up(server: Server, tmp_path: Path) -> None:
    address, path = server.new(), tmp_path / "a.ledger"
    assert run("ledger", "create", address, "--epsilon", "1")[0] == 0
    assert "Left         1\n" in run("ledger", "status", address)[1]
    assert "No charge yet" in run("ledger", "history", address)[1]
    assert run("ledger", "backup", address, tmp_path / "kept.ledger")[0] == 0
    code, out, _ = run("ledger", "copy", address, path)
    assert code == 0
    assert f"is the ledger from now on; {server.address.replace(':@', '@')}" in " ".join(out.split())
    again = json.loads(run("ledger", "copy", path, server.new(), "--json")[1])
    assert again["lines"] == 0
    assert "has been moved already" in run("ledger", "copy", path, tmp_path / "kept.ledger")[2]


def test_a_password_is_not_printed(server: Server) -> None:
    address = server.new().replace("postgres:@", "postgres:hunter2@")
    for words in (
        ("ledger", "create", address, "--epsilon", "1"),
        ("ledger", "create", address, "--epsilon", "1"),
        ("ledger", "status", address, "--json"),
        ("ledger", "status", f"{address}_none"),
        ("ledger", "grant", address, "nobody_of_that_name"),
        ("budget", "explain", "--ledger", address),
    ):
        _, out, problem = run(*words)
        assert "hunter2" not in out + problem


def test_a_release_is_paid_by_a_server_and_tells_nothing_of_how_to_reach_it(
    server: Server, tmp_path: Path
) -> None:
    address, case, out = (
        server.new().replace("postgres:@", "postgres:hunter2@"),
        build(tmp_path),
        tmp_path / "out",
    )
    case.change('"people.ledger"', f'"{address}"')
    code, _, problem = run("release", case.spec, "-o", out)
    assert code != 0
    assert "There is no ledger at postgresql://postgres@/" in problem
    assert run("ledger", "create", address, "--epsilon", "1")[0] == 0
    assert "0.5" in run("plan", case.spec)[1]
    assert run("release", case.spec, "-o", out)[0] == 0
    code, told, _ = run("certificate", "verify", out, "--ledger", address)
    assert code == 0
    assert "line 1 of the ledger" in told
    for path in out.iterdir():
        assert b"hunter2" not in path.read_bytes()
        assert str(server.folder).encode() not in path.read_bytes()
