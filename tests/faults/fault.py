"""A planted fault: a function or two on the way from declarations to exact numbers, wrapped for a while."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sourdine.audit.plans import PlanAudit, Violation, audit_plan
from sourdine.audit.plans.engines import Workplace
from tests.faults.cases import UNITS, FaultCase
from tests.faults.texts import misread

Wrap = Callable[[Any], Any]
_PAIRS = 400


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault: what is wrapped, and how, and where it shows."""

    name: str
    wraps: tuple[tuple[object, str, Wrap], ...]
    case: FaultCase = UNITS
    asks: tuple[str, ...] = ("sums",)
    engine: str = "duckdb"

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The fault is there for as long as this lasts."""
        with ExitStack() as stack:
            for owner, name, wrap in self.wraps:
                stack.enter_context(_wrapped(owner, name, wrap))
            yield

    def examined(self, pairs: int = _PAIRS, seed: int = 1) -> PlanAudit:
        """The audit of a plan with the fault in it."""
        with self.planted():
            plan = self.case.plan(*self.asks)
            joins = self.case.joins()
            engines = [self.engine]
            audit = audit_plan(plan, joins=joins, pairs=pairs, engines=engines, seed=seed, until_found=True)
            if audit.good and (texts := self.case.texts(*self.asks)):
                with TemporaryDirectory() as folder:
                    wrong = misread(texts, plan.schema, plan.unit, Workplace(Path(folder)), seed)
                audit.violations += [_not_as_written(name, pair, seed) for name, pair in wrong.items()]
            return audit


def _not_as_written(name: str, pair: int, seed: int) -> Violation:
    fault = "a question in SQL counts other records than its text"
    return Violation(query=name, line="count", engine="duckdb", fault=fault, seed=seed, pair=pair)


@contextmanager
def _wrapped(owner: Any, name: str, wrap: Wrap) -> Iterator[None]:
    if name not in vars(owner):
        where = getattr(owner, "__name__", owner)
        raise LookupError(f"{where} has no '{name}' any more: the fault that wraps it must follow it.")
    original = vars(owner)[name]
    setattr(owner, name, wrap(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def with_answer(change: Callable[..., Any]) -> Wrap:
    """A function whose answer is changed: the change gets the answer and what was asked."""
    return lambda original: lambda *values, **named: change(original(*values, **named), *values)
