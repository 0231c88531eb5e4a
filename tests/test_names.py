"""Things stand in one place: a public name means one thing in the whole package, and SQL is for `frames`."""

import ast
import re
from collections import Counter
from pathlib import Path

import sourdine


def test_public_classes_have_names_of_their_own() -> None:
    root = Path(sourdine.__file__).parent
    names = Counter(
        node.name
        for path in root.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(names) > 500
    assert [name for name, count in names.items() if count > 1] == []


_SQL = re.compile(r"\b(SELECT .* FROM|COPY .* TO|CREATE (TEMP )?(TABLE|VIEW)|TRY_CAST\(|CASE WHEN) ?")
_ELSEWHERE = ("accounting/ledger/", "audit/plans/")  # SQLite's; and faults, planted in what frames wrote


def test_sql_over_tables_is_written_in_frames_alone() -> None:
    root = Path(sourdine.__file__).parent
    found = {
        name
        for path in root.rglob("*.py")
        if not (name := path.relative_to(root).as_posix()).startswith(("frames/", *_ELSEWHERE))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant | ast.JoinedStr) and _SQL.search(ast.unparse(node))
    }
    assert found == set()
