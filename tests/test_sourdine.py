import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import sourdine


def test_everything_named_is_there_and_in_order() -> None:
    assert sourdine.__all__ == sorted(sourdine.__all__)
    assert dir(sourdine) == sourdine.__all__
    for name in sourdine.__all__:
        assert getattr(sourdine, name) is not None


def test_it_is_few_and_every_package_can_be_had() -> None:
    assert len(sourdine.__all__) <= 25
    for module in pkgutil.iter_modules(sourdine.__path__):
        if module.name not in ("__main__", "cli", "mypy_plugin"):
            assert getattr(sourdine, module.name).__name__ == f"sourdine.{module.name}"


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'privacy'"):
        sourdine.privacy  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    """Time is not asserted; what costs it is."""
    told = subprocess.run(
        [sys.executable, "-c", "import sourdine, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.split(".")[0] for name in told.stdout.split()}
    assert "sourdine" in loaded
    assert not loaded & {"numpy", "scipy", "flint", "cryptography", "typer", "rich", "torch"}
    assert "sourdine.core" not in told.stdout


@pytest.mark.slow
def test_a_table_loads_nothing_that_only_its_questions_need(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    columns = {"x": {"type": "integer", "lower": 0, "upper": 9}}
    program = (
        f"import sourdine, sys\nsourdine.Table({str(tmp_path / 't.csv')!r}, unit='person', columns={columns})"
        "\nprint(*sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(told.stdout.split())
    assert "duckdb" in loaded
    assert not loaded & {"scipy", "fsspec", "polars", "pandas", "pyarrow", "altair", "jinja2", "rich"}
    assert not any(name.startswith(("sourdine.report", "sourdine.accounting.pld.acc")) for name in loaded)
