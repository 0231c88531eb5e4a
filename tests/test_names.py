"""A name of a public class means one thing in the whole package: a reader need not look where it is from."""

import ast
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
