import io
from pathlib import Path

from rich.console import Console

from benchmarks.finding import findings
from benchmarks.install.__main__ import Installation, show, weigh


def installation(name: str, size: int) -> Installation:
    return Installation(name=name, sizes={"numpy": size, "small": 10**6}, compiled=10**6, cold=60, warm=20)


def test_a_smaller_peer_is_told() -> None:
    console = Console(file=io.StringIO(), width=120)
    show(
        [installation("sourdine", 98 * 10**6), installation("a", 48 * 10**6), installation("b", 10**9)],
        console,
    )
    assert isinstance(console.file, io.StringIO)
    told = console.file.getvalue()
    assert findings(told) == [("better elsewhere", "a takes 50 MB on the disk, 0.50 of ours")]
    assert "The largest of sourdine, in MB: numpy 98, small 1." in told


def test_files_are_weighed_by_their_distribution_and_compiled_ones_apart(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (site / "a-1.0.dist-info").mkdir(parents=True)
    (site / "a").mkdir()
    (site / "a" / "a.py").write_bytes(b"x" * 100)
    (site / "a" / "a.pyc").write_bytes(b"x" * 30)
    (site / "a-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: a\nVersion: 1.0\n")
    (site / "a-1.0.dist-info" / "RECORD").write_text("a/a.py,,\na/a.pyc,,\na/gone.py,,\n")
    assert weigh(tmp_path) == ({"a": 100}, 30)
