"""From the aggregates of SQL to statistics, and from arithmetic on them to what is computed of answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import (
    All,
    Case,
    ColumnValue,
    Constant,
    Expression,
    InPeriod,
    Matched,
    Multiply,
    TimePeriod,
    walk,
)
from sourdine.tables.compare import (
    MOST_FACTOR,
    AnswerDifference,
    AnswerFormula,
    AnswerRatio,
    AnswerShare,
    AnswerStep,
)
from sourdine.tables.sql.record import SqlRecords, number_of
from sourdine.tables.statistics import (
    Correlation,
    Count,
    Covariance,
    Mean,
    Quantiles,
    Regression,
    Statistic,
    StdDev,
    Sum,
    Units,
    Variance,
    WeightedMean,
)

# Terms: an aggregate with the numbers that it is multiplied by, raised to and moved by.

_FLOATS = (exp.DType.DOUBLE, exp.DType.FLOAT)


@dataclass(frozen=True)
class Term:
    """factor * value^power + offset, of the value that a label names."""

    label: str
    factor: Fraction = Fraction(1)
    power: int = 1
    offset: Fraction = Fraction(0)

    @property
    def plain(self) -> bool:
        """Whether it is the value itself."""
        return self.factor == 1 and self.power == 1 and self.offset == 0


def without_factor(node: exp.Expr) -> tuple[exp.Expr, Fraction]:
    """An aggregate without a number that it is multiplied by, as in COUNT(*) * 1.0."""
    node = node.unnest()
    if is_float(node) and has_aggregate(node.this):
        return without_factor(node.this)
    if isinstance(node, exp.Mul):
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            if (number := number_of(one)) is not None:
                inner, factor = without_factor(other)
                return inner, factor * number
    return node, Fraction(1)


def is_float(node: exp.Expr) -> bool:
    """Return whether a node casts to floating-point numbers, which answers are."""
    return isinstance(node, exp.Cast) and node.args["to"].this in _FLOATS


def scaled(term: Term, factor: Fraction) -> Term:
    return replace(term, factor=term.factor * factor, offset=term.offset * factor)


def has_aggregate(node: exp.Expr) -> bool:
    return node.find(exp.AggFunc) is not None


def plain_number(number: Fraction) -> int | float:
    if abs(number) > MOST_FACTOR:
        raise InvalidParameter("A number that answers are computed with is up to 1e100 in size.")
    return int(number) if number.denominator == 1 else float(number)


_OF_COLUMN: Mapping[type[exp.Expr], Callable[[str], Statistic]] = {
    exp.Sum: Sum,
    exp.Avg: Mean,
    exp.VariancePop: Variance,
    exp.StddevPop: StdDev,
}
_OF_SAMPLES = {
    exp.Variance: "VAR_POP",
    exp.Stddev: "STDDEV_POP",
    exp.StddevSamp: "STDDEV_POP",
    exp.CovarSamp: "COVAR_POP",
}
_WHOLE = (exp.DType.INT, exp.DType.BIGINT, exp.DType.INT128)
_EXTREMES = (exp.Min, exp.Max, exp.ArgMin, exp.ArgMax)
_QUANTILES = (exp.Median, exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.WithinGroup)


@dataclass
class Aggregates:
    """What a question asks for, as it is read."""

    records: SqlRecords
    statistics: dict[str, Statistic] = field(default_factory=dict)
    steps: dict[str, AnswerStep] = field(default_factory=dict)
    derived: dict[str, Expression] = field(default_factory=dict)
    conditions: list[Expression] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    levels: dict[str, set[float]] = field(default_factory=dict)
    keys: Sequence[str] = ()  # what is grouped by
    alone: bool = False  # a single aggregate is asked for
    written: dict[str, str] = field(default_factory=dict)  # keys as the question has them
    alias: str = ""  # what the aggregate that is being read is called

    def name(self, tree: Expression) -> str:
        """The column of an expression: one that is declared, or one that is computed for the question."""
        if isinstance(tree, ColumnValue):
            return tree.name
        return self.keep(tree.label, tree)

    def keep(self, called: str, tree: Expression) -> str:
        """The name of what is computed; it is refused if another thing has it."""
        if self.derived.setdefault(called, tree) != tree:
            raise self.records.text.refuse(None, f"Two things are called '{called}'. Rename one of them.")
        return called

    def label(self, node: exp.Expr) -> str:
        """The label of what an expression over aggregates comes to, asked for or computed."""
        term = self.term(node)
        if term.plain:
            return term.label
        step = AnswerFormula(
            term.label, factor=plain_number(term.factor), power=term.power, offset=plain_number(term.offset)
        )
        self.steps[step.label] = step
        return step.label

    def term(self, node: exp.Expr) -> Term:
        """What an expression over aggregates is."""
        text = self.records.text
        if isinstance(node, exp.Paren):
            text.only(node, "this")
            return self.term(node.this)
        if isinstance(node, exp.Cast) and has_aggregate(node.this):
            text.only(node, "this", "to", "_type")
            if is_float(node):
                return self.term(node.this)
            if node.args["to"].this not in _WHOLE:
                raise text.refuse(node, "Answers are numbers. Cast them to DOUBLE, INTEGER or BIGINT.")
            return self._rounded(node.this, "nearest")
        if isinstance(node, exp.Floor | exp.Ceil):
            text.only(node, "this")
            return self._rounded(node.this, "floor" if isinstance(node, exp.Floor) else "ceil")
        if isinstance(node, exp.Coalesce):
            return self._coalesced(node)
        if isinstance(node, exp.Neg):
            return scaled(self.term(node.this), Fraction(-1))
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return self._arithmetic(node)
        if isinstance(node, exp.Pow):
            return self._power(node)
        if isinstance(node, exp.Round):
            raise text.refuse(node, "Answers are rounded to what their noise is worth. Leave ROUND out.")
        if isinstance(node, exp.Window) or node.find(exp.Window):
            raise text.refuse(
                node,
                "Records would be computed from others, so that one person could move many. Release the "
                "sums, "
                "and compute on them.",
            )
        return Term(self._statistic(node))

    def _arithmetic(self, node: exp.Expr) -> Term:
        text, left, right = self.records.text, node.this, node.expression
        text.only(node, "this", "expression", "typed", "safe")
        one, two = number_of(left), number_of(right)
        if two is not None:
            term = self.term(left)
            match node:
                case exp.Mul():
                    return scaled(term, two)
                case exp.Div() if two != 0:
                    return scaled(term, 1 / two)
                case exp.Add():
                    return replace(term, offset=term.offset + two)
                case exp.Sub():
                    return replace(term, offset=term.offset - two)
            raise text.refuse(node, "This divides by 0.")
        if one is not None and isinstance(node, exp.Add | exp.Mul | exp.Sub):
            term = self.term(right)
            if isinstance(node, exp.Mul):
                return scaled(term, one)
            turned = scaled(term, Fraction(-1)) if isinstance(node, exp.Sub) else term
            return replace(turned, offset=turned.offset + one)
        if isinstance(node, exp.Div) and one is not None:
            if one == 0:
                raise text.refuse(node, "This is 0 whatever the answer is. Leave it out.")
            self.alias = ""
            return self._stepped(AnswerFormula(self.label(right), factor=plain_number(one), power=-1))
        if isinstance(node, exp.Div):
            return self._ratio(left, right, node)
        if isinstance(node, exp.Sub):
            one_label, other = self._two(left, right, node)
            return self._stepped(AnswerDifference(one_label, less=other))
        raise text.refuse(
            node, "Of two aggregates, differences and ratios are computed. Release both, and compute on them."
        )

    def _ratio(self, top: exp.Expr, bottom: exp.Expr, node: exp.Expr) -> Term:
        """A ratio that one measurement tells, where there is one, or else of two answers."""
        top, factor = without_factor(top)
        if isinstance(window := bottom.unnest(), exp.Window):
            return scaled(self._stepped(self._part_of_total(top, window, node)), factor)
        if (statistic := self._weighted(top, bottom) or self._share(top, bottom)) is not None:
            return scaled(Term(self._ask(statistic)), factor)
        above, below = self._two(top, bottom, node)
        return scaled(self._stepped(AnswerRatio(above, per=below)), factor)

    def _part_of_total(self, top: exp.Expr, window: exp.Window, node: exp.Expr) -> AnswerShare:
        """COUNT(*) / SUM(COUNT(*)) OVER (), or OVER (PARTITION BY ...), from the released counts alone."""
        text = self.records.text
        total, parts = window.this, window.args.get("partition_by") or []
        text.only(window, "this", "partition_by", "over")
        if not (isinstance(total, exp.Sum) and total.this.unnest() == top and self.keys):
            raise text.refuse(
                node,
                "The share of a group in a total is asked for by COUNT(*) / SUM(COUNT(*)) OVER (), or "
                "SUM(x) / SUM(SUM(x)) OVER (), with GROUP BY. Release other sums, and compute on them.",
            )
        text.only(total, "this")
        named = [self._key_named(each) for each in parts]
        others = [key for key in self.keys if key not in named]
        self.check_present(others, node)
        if parts and len(others) != 1:
            raise text.refuse(
                parts[0], "PARTITION BY names what is grouped by, all but one: its keys share a total."
            )
        self.alias = ""
        return AnswerShare(self.label(top), column=others[0] if parts else None)

    def check_present(self, keys: Sequence[str], node: exp.Expr) -> None:
        """Refuse a total over groups one of which, that of a missing key, is not measured."""
        for key in keys:
            tree = self.derived.get(key, ColumnValue(key))
            if self.records.lacks(tree):
                # a key of a public table is read as the column that it equals
                named = isinstance(tree, ColumnValue)
                written = tree.text if named else self.written.get(key, tree.text)
                more = ""
                if any(isinstance(each, Matched) for each in walk(tree)):
                    more = "".join(f" AND {name} IS NOT NULL" for name in tree.columns)
                raise self.records.text.refuse(
                    node,
                    f"Records that lack {written} belong to the total, and to no group that is measured. "
                    f"Write WHERE {written} IS NOT NULL{more}, or declare what a missing one counts as.",
                )

    def _rounded(self, node: exp.Expr, whole: Literal["floor", "ceil", "nearest"]) -> Term:
        """An answer as a whole number."""
        self.alias = ""
        return self._stepped(AnswerFormula(self.label(node), whole=whole))

    def _coalesced(self, node: exp.Coalesce) -> Term:
        """COALESCE(SUM(x), 0), where a sum of nothing is 0 in any case, and COALESCE(AVG(x), 0)."""
        self.records.text.only(node, "this", "expressions")
        of, numbers = _unfiltered(node.this), [number_of(each) for each in node.expressions]
        if isinstance(of, exp.Count | exp.CountIf) or (numbers == [0] and isinstance(of, exp.Sum)):
            return self.term(node.this)
        (value,) = numbers if len(numbers) == 1 else (None,)
        if isinstance(of, exp.Avg) and value is not None:
            self.alias = ""
            filled = AnswerFormula(self.label(node.this), otherwise=plain_number(value))
            return self._stepped(filled)
        raise self.records.text.refuse(
            node,
            "COALESCE is answered for COUNT, for SUM with 0 and for AVG with a number. Leave it out: noise "
            "hides whether a group has any values, so no answer is missing.",
        )

    def _key_named(self, node: exp.Expr) -> str:
        """What is grouped by that a word of PARTITION BY means."""
        if isinstance(node, exp.Column) and node.name in self.keys:
            return node.name
        key = self.key_of(self.records.read(node), self.keys)
        if key is None:
            raise self.records.text.refuse(node, "This is not grouped by. Name what GROUP BY names.")
        return key

    def key_of(self, tree: Expression, keys: Sequence[str]) -> str | None:
        """Return which of some keys an expression is; a date that is grouped by is its day."""
        for each in keys:
            if self.derived.get(each, ColumnValue(each)) in (tree, InPeriod(tree, TimePeriod.DAY)):
                return each
        return None

    def _two(self, one: exp.Expr, other: exp.Expr, node: exp.Expr) -> tuple[str, str]:
        """The labels of two answers to compare, each of which is one number a group."""
        self.alias = ""  # it is the name of neither
        labels = self.label(one), self.label(other)
        if node.find(exp.RegrSlope, exp.RegrIntercept, *_QUANTILES):
            raise self.records.text.refuse(
                node,
                "Quantiles of a column come as one answer, and so do the coefficients of a line. Release "
                "them, and compute on them.",
            )
        if labels[0] == labels[1]:
            raise self.records.text.refuse(node, "Both are the same. Compare two answers.")
        return labels

    def _weighted(self, top: exp.Expr, bottom: exp.Expr) -> Statistic | None:
        """SUM(w * x) / SUM(w)."""
        if not (isinstance(top, exp.Sum) and isinstance(bottom, exp.Sum)):
            return None
        product, weight = self.records.read(top.this), self.records.read(bottom.this)
        if not isinstance(product, Multiply) or weight not in (product.left, product.right):
            return None
        value = product.right if product.left == weight else product.left
        if self.records.lacks(value):
            return None  # the weight of a record without a value is in the sum of weights alone
        return WeightedMean(self.name(value), self.name(weight))

    def _share(self, top: exp.Expr, bottom: exp.Expr) -> Statistic | None:
        """SUM(x) / COUNT(x), and COUNT(*) FILTER (WHERE ...) / COUNT(*), are means."""
        if not isinstance(bottom, exp.Count):
            return None
        counted = _counted(bottom)
        if isinstance(top, exp.Sum) and counted is not None and counted == top.this:
            return Mean(self.name(self.records.read(top.this)))
        if (
            isinstance(top, exp.Filter)
            and isinstance(top.this, exp.Count)
            and _counted(top.this) is None
            and counted is None
        ):
            return Mean(self._indicator(self._condition(top)))
        return None

    def _power(self, node: exp.Expr) -> Term:
        self.records.text.only(node, "this", "expression")
        exponent, term = number_of(node.expression), self.term(node.this)
        whole = exponent is not None and exponent.denominator == 1 and 1 <= exponent <= 8
        if exponent is None or not whole or not term.plain:
            raise self.records.text.refuse(
                node, "A power of an answer is a whole number from 1 to 8, written out, of the answer alone."
            )
        return replace(term, power=int(exponent))

    def _stepped(self, step: AnswerStep) -> Term:
        self.steps[step.label] = step
        return Term(step.label)

    def _ask(self, statistic: Statistic) -> str:
        self.statistics[statistic.label] = statistic
        return statistic.label

    def _statistic(self, node: exp.Expr) -> str:
        """The label of the statistic of one aggregate."""
        text, records = self.records.text, self.records
        kind = type(node)
        if isinstance(node, exp.Filter):
            return self._filtered(node)
        if isinstance(node, exp.Count):
            return self._count(node)
        if isinstance(node, exp.CountIf):
            text.only(node, "this")
            return self._ask(Sum(self._indicator(records.read(node.this))))
        if isinstance(node, _EXTREMES):
            level = 0.01 if isinstance(node, exp.Min | exp.ArgMin) else 0.99
            quantile = f"QUANTILE_CONT({node.this.sql(dialect='duckdb')}, {level})"
            raise text.refuse(
                node, f"This is the value of one record. Ask for a quantile, such as {quantile}."
            )
        if kind in _OF_SAMPLES:
            raise text.refuse(
                node,
                f"This divides by one less than the number of records. Write {_OF_SAMPLES[kind]}, which "
                "divides by their number.",
            )
        if kind in _OF_COLUMN:
            text.only(node, "this")
            if isinstance(node.this, exp.Distinct):
                raise text.refuse(
                    node, "DISTINCT is not answered here: whether a value occurs may depend on one record."
                )
            return self._ask(_OF_COLUMN[kind](self.name(records.read(node.this))))
        if isinstance(node, exp.Corr | exp.CovarPop):
            text.only(node, "this", "expression")
            pair = self.name(records.read(node.this)), self.name(records.read(node.expression))
            return self._ask(Correlation(*pair) if isinstance(node, exp.Corr) else Covariance(*pair))
        if isinstance(node, exp.RegrSlope | exp.RegrIntercept):
            text.only(node, "this", "expression")
            of, on = (self.name(records.read(each)) for each in (node.this, node.expression))
            return self._ask(Regression(of, on=on))
        if isinstance(
            node, exp.Median | exp.PercentileCont | exp.PercentileDisc | exp.Quantile | exp.WithinGroup
        ):
            return self._quantile(node)
        if isinstance(node, exp.Anonymous) and node.name.upper() == "MEAN" and len(node.expressions) == 1:
            return self._ask(Mean(self.name(records.read(node.expressions[0]))))
        if isinstance(node, exp.AggFunc):
            raise text.refuse(
                node,
                f"'{node.key.upper()}' is not answered. Ask for COUNT, SUM, AVG, VAR_POP, STDDEV_POP, "
                "MEDIAN, "
                "QUANTILE_CONT, CORR, COVAR_POP, REGR_SLOPE or REGR_INTERCEPT.",
            )
        raise text.refuse(node, "This would show records. Group by it, or ask for an aggregate of it.")

    def _count(self, node: exp.Count) -> str:
        text = self.records.text
        text.only(node, "this", "big_int")
        if isinstance(node.this, exp.Distinct):
            return self._distinct(node)
        counted = _counted(node)
        if counted is None:
            return self._ask(Count())
        present = self.records.has_value(counted)
        if self.alone:
            self.conditions.append(present)
            return self._ask(Count())
        return self._ask(Sum(self._indicator(present)))

    def _distinct(self, node: exp.Count) -> str:
        columns, unit = node.this.expressions, self.records.unit
        column = columns[0].unnest() if len(columns) == 1 else None
        if isinstance(column, exp.Column) and unit is not None and column.name.casefold() == unit.casefold():
            for name, tree in self.records.columns.items():  # a SELECT inside may call another one so
                if name.casefold() == unit.casefold() and tree != ColumnValue(unit):
                    raise self.records.text.refuse(
                        column, f"'{name}' is the name of another column here. Rename that one."
                    )
            self.records.check_table(column)
            return self._ask(Units())
        raise self.records.text.refuse(
            node,
            "How many different values there are is answered for the privacy unit alone"
            + (
                f": write COUNT(DISTINCT {unit})."
                if unit is not None
                else ". Ask for COUNT(*) by the column."
            ),
        )

    def _condition(self, node: exp.Filter) -> Expression:
        self.records.text.only(node, "this", "expression")
        self.records.text.only(node.expression, "this")
        return self.records.read(node.expression.this)

    def _indicator(self, condition: Expression) -> str:
        """A column of 1 where a condition holds, else 0: also where it is missing."""
        tree = Case(((condition, Constant(1)),), Constant(0))
        free = self.alias and self.derived.get(self.alias, tree) == tree
        return self.keep(self.alias if free else tree.label, tree)

    def _filtered(self, node: exp.Filter) -> str:
        condition, inner = self._condition(node), node.this
        if isinstance(inner, exp.Count) and not isinstance(inner.this, exp.Distinct):
            self.records.text.only(inner, "this", "big_int")
            if (counted := _counted(inner)) is not None:
                parts = condition.of if type(condition) is All else (condition,)
                condition = All((*parts, self.records.has_value(counted)))
            return self._ask(Sum(self._indicator(condition)))
        if isinstance(inner, exp.Sum | exp.Avg):
            self.records.text.only(inner, "this")
            chosen = Case(((condition, self.records.read(inner.this)),))
            return self._ask(_OF_COLUMN[type(inner)](self.name(chosen)))
        raise self.records.text.refuse(node, "FILTER goes with COUNT(*), SUM and AVG. Use WHERE for others.")

    def _quantile(self, node: exp.Expr) -> str:
        text = self.records.text
        if isinstance(node, exp.WithinGroup):
            text.only(node, "this", "expression")
            level, order = node.this.this, node.expression
            text.only(node.this, "this")
            text.only(order, "expressions")
            if len(order.expressions) != 1 or order.expressions[0].args.get("desc"):
                raise text.refuse(node, "Write WITHIN GROUP (ORDER BY one column).")
            of = order.expressions[0].this
        else:
            text.only(node, "this", "expression", "quantile")
            of, level = node.this, node.args.get("expression") or node.args.get("quantile")
        listed = level.expressions if isinstance(level, exp.Array) else [level]
        numbers = [Fraction(1, 2)] if isinstance(node, exp.Median) else [number_of(each) for each in listed]
        if any(each is None or not 0 < each < 1 for each in numbers):
            raise text.refuse(node, "The level of a quantile is a number between 0 and 1, written out.")
        column = self.name(self.records.read(of))
        levels = self.levels.setdefault(column, set())
        levels |= {float(each) for each in numbers if each is not None}
        # several levels of a column are one statistic, which is dearer than one and cheaper than several
        return self._ask(Quantiles(column, sorted(levels)))


def _unfiltered(node: exp.Expr) -> exp.Expr:
    node = node.unnest()
    return node.this if isinstance(node, exp.Filter) else node


def _counted(node: exp.Expr) -> exp.Expr | None:
    """The column whose values are counted; none of COUNT(*)."""
    return None if node.this is None or isinstance(node.this, exp.Star | exp.Literal) else node.this


def is_aggregate(node: exp.Expr) -> bool:
    """MEAN is one of DuckDB's that the parser does not know."""
    mean = isinstance(node, exp.Anonymous) and node.name.upper() == "MEAN"
    return mean or isinstance(node, exp.AggFunc)
