"""Expressions of one record: a small typed tree, checked by bounds and computed alike by every engine."""

from sourdine.frames.expressions.arithmetic import Add, Divide, Multiply, Negate, Subtract
from sourdine.frames.expressions.calendar import DatePart, TimePeriod
from sourdine.frames.expressions.choice import Case, Coalesce, Greatest, Least, NullIf
from sourdine.frames.expressions.dates import InPeriod, PartOf, TimeBetween
from sourdine.frames.expressions.form import (
    ExpressionField,
    read_condition,
    read_expression,
    write_expression,
)
from sourdine.frames.expressions.functions import Absolute, Ceiling, Clamp, Floor, Logarithm, Power, Root
from sourdine.frames.expressions.joined import Matched
from sourdine.frames.expressions.keys import BinOf, Letters, Substring
from sourdine.frames.expressions.kinds import (
    DayKind,
    KeyKind,
    Kind,
    MomentKind,
    NumberKind,
    TextKind,
    TruthKind,
)
from sourdine.frames.expressions.logic import All, AnyOf, Not
from sourdine.frames.expressions.presence import columns_present, may_be_missing
from sourdine.frames.expressions.tree import (
    ColumnValue,
    Constant,
    Expression,
    Kinds,
    RecordCells,
    check_tree,
    walk,
)
from sourdine.frames.expressions.truths import Among, Comparison, IsMissing, Like

__all__ = [
    "Absolute",
    "Add",
    "All",
    "Among",
    "AnyOf",
    "BinOf",
    "Case",
    "Ceiling",
    "Clamp",
    "Coalesce",
    "ColumnValue",
    "Comparison",
    "Constant",
    "DatePart",
    "DayKind",
    "Divide",
    "Expression",
    "ExpressionField",
    "Floor",
    "Greatest",
    "InPeriod",
    "IsMissing",
    "KeyKind",
    "Kind",
    "Kinds",
    "Least",
    "Letters",
    "Like",
    "Logarithm",
    "Matched",
    "MomentKind",
    "Multiply",
    "Negate",
    "Not",
    "NullIf",
    "NumberKind",
    "PartOf",
    "Power",
    "RecordCells",
    "Root",
    "Substring",
    "Subtract",
    "TextKind",
    "TimeBetween",
    "TimePeriod",
    "TruthKind",
    "check_tree",
    "columns_present",
    "may_be_missing",
    "read_condition",
    "read_expression",
    "walk",
    "write_expression",
]
