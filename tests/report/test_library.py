"""The script of charts, which building the package makes."""

import gzip
import shutil
from pathlib import Path

import pytest

from sourdine.core.errors import SourdineError
from sourdine.report import view as library
from sourdine.report.view import chart_library


def test_the_script_and_its_licences_are_in_the_package() -> None:
    """Pages carry the script whole, so its licences have to be where it is."""
    script = chart_library()
    assert "vegaEmbed" in script
    assert "</script" not in script
    licences = Path(library.__file__).with_name("charts_licences.txt").read_text("utf-8")
    for name in ("vega", "vega-lite", "vega-embed", "d3-array", "fast-json-patch"):
        assert name in licences


def test_sources_that_nobody_installed_say_how_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "library.py"
    shutil.copy(library.__file__, module)
    monkeypatch.setattr(library, "__file__", str(module))
    chart_library.cache_clear()
    try:
        with pytest.raises(SourdineError, match="pip install -e"):
            chart_library()
    finally:
        chart_library.cache_clear()


def test_the_script_of_a_wheel_is_read_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "charts.js.gz").write_bytes(gzip.compress(b"window.vegaEmbed = 1;"))
    monkeypatch.setattr(library, "__file__", str(tmp_path / "view.py"))
    chart_library.cache_clear()
    try:
        assert chart_library() == "window.vegaEmbed = 1;"
    finally:
        chart_library.cache_clear()
