"""Small faults of a module, one by one: what a slip of the pen would make of each expression.

A mutant replaces one stretch of the source. Its key tells the module, the function, and the line before and
after, not where the line stands, so that it names the same fault while code around it changes.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.BitXor: ("^", "|"),
}
DROPS = (ast.Add, ast.Sub, ast.Mult, ast.Div)  # x + delta becomes x
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("fmin", "fmax"),
    ("argmin", "argmax"),
    ("floor", "ceil"),
    ("any", "all"),
    ("above", "below"),
    ("float_above", "float_below"),
    ("root_above", "root_below"),
    ("log1p", "log"),
    ("expm1", "exp"),
    ("logaddexp", "maximum"),
)
NAMES = (
    dict(_PAIRS) | {b: a for a, b in _PAIRS if a not in ("log1p", "expm1", "logaddexp")} | {"round": "int"}
)
BUILT_IN = {"min", "max", "any", "all", "int"}
WORDS = {"left": "right", "right": "left", "ROUND_CEILING": "ROUND_FLOOR", "ROUND_FLOOR": "ROUND_CEILING"}
UNSWAPPED = {"min", "max", "minimum", "maximum", "fmin", "fmax", "logaddexp", "gcd", "hypot"} | {  # the same
    *("isinstance", "issubclass", "getattr", "hasattr", "setattr", "cast")  # any test would see it
}
SHOWN = {"__repr__", "__str__", "_repr_html_"}


@dataclass(frozen=True)
class Mutant:
    """A module with the bytes from start to end replaced by a text."""

    module: str  # below the package, such as core/grid.py
    place: str  # the function or class, with those around it
    operator: str
    lines: tuple[int, int]  # first and last, of what is replaced
    span: tuple[int, int]
    text: str
    before: str
    after: str
    again: int = 0  # how many mutants before it have the same place and lines

    @property
    def key(self) -> str:
        more = f" [{self.again + 1}]" if self.again else ""
        return f"{self.module} {self.place}: {self.before} => {self.after}{more}"

    def order(self, seed: int) -> str:
        """Where it comes in the draw of a seed: others that come or go leave it there."""
        return hashlib.sha256(f"{seed} {self.key}".encode()).hexdigest()

    def apply(self, source: bytes) -> bytes:
        return source[: self.span[0]] + self.text.encode() + source[self.span[1] :]

    def sound(self, source: bytes) -> bool:
        """Whether it can be compiled, and is another program."""
        try:
            changed = ast.parse(self.apply(source))
        except SyntaxError:
            return False
        return ast.dump(changed) != ast.dump(ast.parse(source))


def mutants(module: str, source: bytes) -> list[Mutant]:
    """All mutants of a module, in the order of the source."""
    seen: Counter[str] = Counter()
    found = []
    for mutant in _Walk(module, source).walk():
        found.append(replace(mutant, again=seen[mutant.key]))
        seen[mutant.key] += 1
    return found


Change = tuple[str, int, int, str]


class _Walk:
    """Goes through a module with the names of the functions and classes around."""

    def __init__(self, module: str, source: bytes) -> None:
        self.module = module
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.names = source.decode()

    def walk(self) -> Iterator[Mutant]:
        yield from self._visit(ast.parse(self.source), ())

    def _visit(self, node: ast.AST, place: tuple[str, ...]) -> Iterator[Mutant]:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return  # words, and what a reader is told
        for operator, start, end, text in self._changes(node):
            yield self._mutant(".".join(place), operator, start, end, text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name in SHOWN:
                return
            place = (*place, node.name)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _typing(child):
                    yield from self._visit(child, place)

    def _mutant(self, place: str, operator: str, start: int, end: int, text: str) -> Mutant:
        first = self.source.count(b"\n", 0, start)
        last = self.source.count(b"\n", 0, max(end - 1, start))
        head, tail = self.starts[first], self.starts[last + 1]
        before = self.source[head:tail].decode()
        after = (self.source[head:start] + text.encode() + self.source[end:tail]).decode()
        lines = (first + 1, last + 1)
        return Mutant(self.module, place, operator, lines, (start, end), text, _flat(before), _flat(after))

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self.source[self._start(node) : self._end(node)].decode()

    def _whole(self, operator: str, node: ast.expr | ast.stmt, text: str) -> Change:
        return operator, self._start(node), self._end(node), text

    def _between(
        self, operator: str, left: ast.expr, right: ast.expr, signs: tuple[str, str]
    ) -> Iterator[Change]:
        start, end = self._end(left), self._start(right)
        gap = self.source[start:end].decode()
        if gap.count(signs[0]) == 1:
            yield operator, start, end, gap.replace(*signs)

    def _changes(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare():
                lefts = [node.left, *node.comparators]
                for left, sign, right in zip(lefts, node.ops, node.comparators, strict=False):
                    yield from self._between("comparison", left, right, COMPARISONS[type(sign)])
            case ast.BinOp() if not _words(node.left) and not _words(node.right):
                yield from self._binary(node)
            case ast.BoolOp():
                word = " and " if isinstance(node.op, ast.And) else " or "
                texts = [f"({self._text(value)})" for value in node.values]
                for index in range(len(texts)):
                    rest = word.join(texts[:index] + texts[index + 1 :])
                    yield self._whole("condition dropped", node, f"({rest})")
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield self._whole("sign", node, f"({self._text(node.operand)})")
            case ast.Constant():
                yield from self._constant(node)
            case ast.If(test=test) | ast.IfExp(test=test):
                if not _negated(test):
                    yield self._whole("condition", test, f"(not ({self._text(test)}))")
                if isinstance(node, ast.IfExp):
                    yield self._whole("branch", node, f"({self._text(node.body)})")
                    yield self._whole("branch", node, f"({self._text(node.orelse)})")
            case ast.Call():
                yield from self._call(node)
            case ast.Attribute(attr="inf"):
                yield self._whole("sign", node, f"(-{self._text(node)})")
            case ast.AugAssign():
                yield self._whole("dropped", node, "pass")
                if type(node.op) in ARITHMETIC:
                    yield from self._augmented(node)
            case ast.Expr(value=ast.Call()):
                yield self._whole("dropped", node, "pass")

    def _binary(self, node: ast.BinOp) -> Iterator[Change]:
        if isinstance(node.op, ast.FloorDiv):
            up = f"(-(-({self._text(node.left)}) // ({self._text(node.right)})))"
            yield self._whole("other way", node, up)
        elif type(node.op) in ARITHMETIC:
            yield from self._between("arithmetic", node.left, node.right, ARITHMETIC[type(node.op)])
        if isinstance(node.op, DROPS):
            yield self._whole("dropped", node, f"({self._text(node.left)})")

    def _augmented(self, node: ast.AugAssign) -> Iterator[Change]:
        old, new = ARITHMETIC[type(node.op)]
        start, end = self._end(node.target), self._start(node.value)
        gap = self.source[start:end].decode()
        yield "arithmetic", start, end, gap.replace(f"{old}=", f"{new}=", 1)

    def _constant(self, node: ast.Constant) -> Iterator[Change]:
        value = node.value
        if isinstance(value, bool):
            yield self._whole("constant", node, str(not value))
        elif isinstance(value, int):
            yield self._whole("constant", node, f"{value + 1}")
            yield self._whole("constant", node, f"{value - 1}" if value else "(-1)")
        elif isinstance(value, float):
            yield self._whole("constant", node, "0.0" if value else "1.0")
            yield self._whole("constant", node, f"{2 * value!r}" if value else "(-1.0)")
        elif value in WORDS:
            yield self._whole("other way", node, f'"{WORDS[value]}"')

    def _call(self, node: ast.Call) -> Iterator[Change]:
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if other := NAMES.get(name):
            known = isinstance(function, ast.Attribute) or other in BUILT_IN or other in self.names
            if known:
                yield "other way", self._end(function) - len(name), self._end(function), other
        if len(node.args) < 2 or name in UNSWAPPED:
            return
        first, second = node.args[:2]
        if any(isinstance(one, ast.Starred) or _words(one) for one in (first, second)):
            return
        gap = self.source[self._end(first) : self._start(second)].decode()
        if gap.strip() == ",":
            swapped = f"{self._text(second)}{gap}{self._text(first)}"
            yield "arguments", self._start(first), self._end(second), swapped


def _words(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _negated(test: ast.expr) -> bool:
    """Whether another mutant is the negation of this condition."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    return isinstance(test, ast.UnaryOp)


def _typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _flat(text: str) -> str:
    return " ".join(text.split())
