"""Things stand in one place: a public name means one thing in the whole package, and SQL is for `frames`."""

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType

import sourdine
import sourdine_reproduction

_SQL = re.compile(r"\b(SELECT .* FROM|COPY .* TO|CREATE (TEMP )?(TABLE|VIEW)|TRY_CAST\(|CASE WHEN) ?")
_WORDS = re.compile(r"SELECT|COPY|CREATE|TRY_CAST|CASE")
_ELSEWHERE = (
    "accounting/ledger/",  # a ledger's own
    "audit/plans/",  # faults, planted in what frames wrote
    "collector/",  # its own tables
    "tables/series/state.py",  # that of its own file
    "tables/sql/",  # read, and shown in sentences: never written
    "cli/sql.py",
)


def test_sql_over_tables_is_written_in_frames_alone() -> None:
    root = Path(sourdine.__file__).parent
    found = {
        name
        for path in root.rglob("*.py")
        if not (name := path.relative_to(root).as_posix()).startswith(("frames/", *_ELSEWHERE))
        if _WORDS.search(text := path.read_text(encoding="utf-8"))  # most have none: that is quick to see
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant | ast.JoinedStr) and _SQL.search(ast.unparse(node))
    }
    assert found == set()


# one idea has one name: these were other names of it
OLD_NAMES = {
    "reserve": "selection_delta",
    "at": "levels",
    "rate": "sampling_rate",
    "least": "lower or minimum",
    "most": "upper or a maximum by name",
}
LATER = "sourdine.learning"  # its parameters are being grouped


@cache
def parsed(module: str) -> list[ast.stmt]:
    return ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8")).body


def public() -> Iterator[tuple[str, str, ast.arg | ast.AnnAssign | ast.FunctionDef]]:
    """What the packages export: a name, the module, and each parameter, field and result of it."""
    root = Path(sourdine.__file__).parent
    packages = [".".join(path.parent.relative_to(root.parent).parts) for path in root.rglob("__init__.py")]
    inner = ("sourdine.cli", "sourdine_reproduction", LATER, "sourdine.audit.training")
    seen: set[int] = set()
    for package in sorted(name for name in packages if not name.startswith(inner)):
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            thing = None if f"{package}.{name}".startswith(inner) else getattr(module, name)
            home = str(getattr(thing, "__module__", ""))
            if not isinstance(thing, type | FunctionType) or id(thing) in seen or home.startswith(inner):
                continue
            seen.add(id(thing))
            for node in parsed(home):
                if getattr(node, "name", "") == thing.__name__:
                    yield from ((each, home, part) for each, part in parts(node))


def parts(node: ast.AST, owner: str = "") -> Iterator[tuple[str, ast.arg | ast.AnnAssign | ast.FunctionDef]]:
    if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
        name, given = f"{owner}{node.name}", node.args
        yield name, node
        yield from ((name, each) for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))
    elif isinstance(node, ast.ClassDef):
        for each in node.body:
            if isinstance(each, ast.AnnAssign):
                yield node.name, each
            yield from parts(each, f"{node.name}.")


def test_a_parameter_has_the_same_name_everywhere() -> None:
    found = list(public())
    assert len(found) > 1500
    old = []
    for owner, home, part in found:
        name = part.arg if isinstance(part, ast.arg) else ""
        if isinstance(part, ast.AnnAssign):
            name = ast.unparse(part.target)
        if name in OLD_NAMES:
            old.append(f"{home}: {owner}({name}=) is called {OLD_NAMES[name]}")
    assert not old, "\n".join(old)


# what is meant by a name, told by the types that may stand for it
_NUMBER = {"Fraction", "float", "int", "str", "Number"}
MEANING = {
    "epsilon": {*_NUMBER, "Bracket", "Sequence"},
    "delta": _NUMBER,
    "selection_delta": _NUMBER,
    "rho": _NUMBER,
    "sampling_rate": _NUMBER,
    "noise_multiplier": {"float"},
    "confidence": {"float"},
    "lower": {*_NUMBER, "Floats"},
    "upper": {*_NUMBER, "Floats"},
    "bounds": {"tuple", "float", "Sequence"},  # of several columns: a pair for each
    "levels": {*_NUMBER, "Sequence", "tuple", "ArrayLike"},
    "unit": {"PrivacyUnit", "str"},
    "neighbours": {"Neighbours", "str"},
    "by": {"str", "Sequence", "tuple", "Grouping", "KeyOrTree"},
    "seed": {"int"},
    "ledger": {"Ledger", "Path", "str"},
    "purpose": {"str"},
    "bits": {"Bits"},
}
ANOTHER_MEANING = {  # by the field's own words
    "Binner.bounds": "the bounds, edges or categories of each column",
    "NaiveBayes.bounds": "the same",
    "Generalised.levels": "how coarse each column is, by its name",
    "Rappor.bits": "the length of a Bloom filter, as RAPPOR calls it",
    "OneTimeRappor.bits": "the same",
    "Candidates.bits": "the same",
}


def test_a_name_means_the_same_everywhere() -> None:
    others = []
    for owner, home, part in public():
        if isinstance(part, ast.FunctionDef) or part.annotation is None:
            continue
        name = part.arg if isinstance(part, ast.arg) else ast.unparse(part.target)
        words = set(re.findall(r"\w+", ast.unparse(part.annotation))) - {"None"}
        known = f"{owner.partition('.')[0]}.{name}" in ANOTHER_MEANING
        if name in MEANING and not known and not words <= MEANING[name]:
            others.append(f"{home}: {owner}({name}: {ast.unparse(part.annotation)})")
    assert not others, "\n".join(others)


def test_public_signatures_tell_their_types() -> None:
    vague = []
    for owner, home, part in public():
        hint = part.returns if isinstance(part, ast.FunctionDef) else part.annotation
        told = "" if hint is None else ast.unparse(hint)
        for generic in ("NDArray[Any]", "Accountant[Any]", "MaskedArray[Any, Any]", "tuple[Any, ...]"):
            told = told.replace(generic, "")  # of any kind, which is what is meant
        if re.search(r"\bAny\b", told):
            vague.append(f"{home}: {owner}: {told}")
    assert vague == ["sourdine.local.rappor.decode.decoding: Candidates.design: Any"]  # scipy has no types


# A class or module is a noun phrase; these are adjectives, participles, verbs, prepositions, metaphors.
NOT_NOUNS = re.compile(
    r"(Alone|Among|Around|Beside|Best|Both|Crowd|Deviance|Doubled|Favours|Guess|Holds|Light|Look|Loose|Moving"
    r"|Outer|Reach|Scout|SetApart|Tell|Telling|Tested|Together|Truth|Upper|Whole|Worst|\w*Law"
    r"|alone|beside|calls|drawing|ever|far|found|held|intake|kept|look|making|moved|moving|near|owners|problems"
    r"|reach|several|signs|tell|tested|together|told|unlike|uses|whole)"
)


def test_names_to_replace_only_become_fewer() -> None:
    """The list loses a line with each name that is replaced, and never gains one."""
    roots = (Path(sourdine.__file__).parent, Path(sourdine_reproduction.__file__).parent)
    files = {path: path.read_text(encoding="utf-8") for root in roots for path in root.rglob("*.py")}
    defined = {path.stem for path in files} | {path.parent.name for path in files}
    for text in files.values():
        defined.update(re.findall(r"^(?:class|def) (\w+)", text, re.MULTILINE))
    listed = (Path(__file__).parent / "names_to_replace.txt").read_text(encoding="utf-8").split()
    assert {name for name in defined if NOT_NOUNS.fullmatch(name)} == set(listed)
    assert len(listed) == len(set(listed))
