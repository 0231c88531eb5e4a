"""The words of SQL that have a meaning for one record, and what to write instead of some others."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from sourdine.frames.expressions import (
    Absolute,
    Add,
    Ceiling,
    Coalesce,
    DatePart,
    Divide,
    Expression,
    Floor,
    Greatest,
    Least,
    Logarithm,
    Multiply,
    Negate,
    Not,
    NullIf,
    Root,
    Subtract,
)

BINARY: Mapping[type[exp.Expr], Callable[[Expression, Expression], Expression]] = {
    exp.Add: Add,
    exp.Sub: Subtract,
    exp.Mul: Multiply,
    exp.Div: Divide,
    exp.Nullif: NullIf,
}
UNARY: Mapping[type[exp.Expr], Callable[[Expression], Expression]] = {
    exp.Neg: Negate,
    exp.Abs: Absolute,
    exp.Floor: Floor,
    exp.Ceil: Ceiling,
    exp.Ln: Logarithm,
    exp.Sqrt: Root,
    exp.Not: Not,
}
SIGNS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What a comparison is with its sides exchanged, where it is another one."""
VARIADIC: Mapping[type[exp.Expr], Callable[[tuple[Expression, ...]], Expression]] = {
    exp.Least: Least,
    exp.Greatest: Greatest,
    exp.Coalesce: Coalesce,
}
DATE_PARTS = {
    "YEAR": DatePart.YEAR,
    "QUARTER": DatePart.QUARTER,
    "MONTH": DatePart.MONTH,
    "WEEK": DatePart.WEEK,
    "DAY": DatePart.DAY_OF_MONTH,
    "DAYOFMONTH": DatePart.DAY_OF_MONTH,
    "ISODOW": DatePart.DAY_OF_WEEK,
    "HOUR": DatePart.HOUR,
    "MINUTE": DatePart.MINUTE,
}
DATE_FUNCTIONS: Mapping[type[exp.Expr], DatePart] = {
    exp.Year: DatePart.YEAR,
    exp.Quarter: DatePart.QUARTER,
    exp.Month: DatePart.MONTH,
    exp.Week: DatePart.WEEK,
    exp.Day: DatePart.DAY_OF_MONTH,
    exp.DayOfMonth: DatePart.DAY_OF_MONTH,
    exp.DayOfWeekIso: DatePart.DAY_OF_WEEK,
    exp.Hour: DatePart.HOUR,
    exp.Minute: DatePart.MINUTE,
}
TIME_UNITS = {"DAY": "days", "HOUR": "hours", "MINUTE": "minutes", "SECOND": "seconds"}
DATES = (exp.DType.DATE,)
TIMES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME)
OF_OTHERS = (
    "Records would be computed from others, so that one person could move many. Release the inner question, "
    "and compute on its answer."
)
INSTEAD: Mapping[type[exp.Expr], str] = {
    exp.CurrentDate: "The same question would mean another tomorrow. Write the date: DATE '2024-01-31'.",
    exp.CurrentTimestamp: "The same question would mean another later. Write the time.",
    exp.Rand: "Randomness is drawn for the noise alone. Leave it out.",
    exp.Mod: "The remainder of a division is not computed. Group by FLOOR(x / n), or declare a column.",
    exp.IntDiv: "Write FLOOR(a / b).",
    exp.Round: "Write FLOOR(x + 0.5), or declare the column with that granularity.",
    exp.DPipe: "Texts are not joined: nobody could list the keys. Group by both columns.",
    exp.ILike: "Write LIKE, which tells capitals from small letters.",
    exp.Log: "Write LN(x), the natural logarithm; others are multiples of it.",
    exp.Exists: "Records would be chosen by others. Join before, and declare the table that comes of it.",
    exp.Subquery: OF_OTHERS,
    exp.Window: OF_OTHERS,
    exp.TimeToStr: "Write DATE_TRUNC('month', x) or EXTRACT(month FROM x).",
    exp.Placeholder: "Write the value: a question is kept as it was asked.",
}
