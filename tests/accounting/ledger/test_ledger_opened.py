import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from sourdine.accounting.explain import explain_ledger
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.release import Release
from sourdine.core.errors import InvalidParameter, LedgerError
from tests.campaigns.ledger.crash import new_ledger, one_spend

ROOT = Path(__file__).parents[3]


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[Ledger]:
    seen: list[Ledger] = []

    def close(ledger: Ledger) -> None:
        seen.append(ledger)

    monkeypatch.setattr(Ledger, "close", close)
    return seen


def test_what_is_opened_here_is_closed_here(tmp_path: Path, closed: list[Ledger]) -> None:
    path = tmp_path / "survey.ledger"
    made = new_ledger(path, Fraction(1))
    for given in (path, str(path)):
        with opened(given) as held:
            assert held.terms == made.terms
            assert held not in closed
        assert closed.pop() is held
    with opened(made) as held:
        assert held is made
    with opened(None) as nothing:
        assert nothing is None
    assert closed == []


def test_it_is_closed_after_an_error_too(tmp_path: Path, closed: list[Ledger]) -> None:
    new_ledger(tmp_path / "survey.ledger", Fraction(1))
    with pytest.raises(KeyError), opened(tmp_path / "survey.ledger") as held:
        raise KeyError
    assert closed == [held]


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="the path of its file"):
        opened(3)  # type: ignore[call-overload]
    with pytest.raises(LedgerError):
        opened(tmp_path / "none.ledger")
    assert list(tmp_path.iterdir()) == []


def test_certificates_and_explanations_take_a_path(tmp_path: Path) -> None:
    path, spend = tmp_path / "survey.ledger", one_spend()
    with new_ledger(path, Fraction(1)) as ledger:
        receipt = ledger.charge(spend, purpose="p", secure=True, declared={})
    release = Release(values=1, intervals=None, spends=(spend,), receipt=receipt)
    assert release.certificate(path).verify(str(path)) == ()
    assert explain_ledger(path).to_json() == explain_ledger(ledger).to_json()


_SECOND_INTERPRETER = """
import importlib, numpy
made = importlib.import_module("_xxsubinterpreters").create(isolated=False)
importlib.import_module("_xxsubinterpreters").run_string(made, '''
from sourdine.accounting.ledger import Ledger
from tests.campaigns.ledger.crash import one_spend
print(Ledger.open({path!r}).charge(one_spend(), purpose="p"))
''')
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="interpreters are made in another way there")
def test_a_second_interpreter_of_a_process_charges_nothing(tmp_path: Path) -> None:
    """NumPy loads into one interpreter of a process, so what needs it fails before the charge."""
    path = tmp_path / "a.ledger"
    ledger = new_ledger(path, Fraction(1))
    program = _SECOND_INTERPRETER.format(path=str(path))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert "cannot load module more than once per process" in done.stderr
    assert ledger.status().blocks == 0
