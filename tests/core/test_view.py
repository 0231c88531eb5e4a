import subprocess
import sys

import pytest

from sourdine.core.display import figure_of, view_of


def test_what_nobody_registered_is_not_shown() -> None:
    with pytest.raises(TypeError, match="no view of int"):
        view_of(3)
    with pytest.raises(TypeError, match="no figure of int"):
        figure_of(3)


def test_views_are_loaded_when_something_is_shown() -> None:
    """And only those of its package: a ledger needs no tables, and nothing but training needs torch."""
    shown = (
        "import sys, tempfile, sourdine; from pathlib import Path;"
        "made = sourdine.Ledger.create(Path(tempfile.mkdtemp()) / 'a.ledger', epsilon=1);"
        "before = set(sys.modules); str(made);"
        "print('sourdine.report.views' in before, *sorted(set(sys.modules) - before))"
    )
    told = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout
    before, *loaded = told.split()
    assert before == "False"
    assert "sourdine.report.views.accounting" in loaded
    assert not {"sourdine.tables", "sourdine.local", "altair", "torch"} & set(loaded)
