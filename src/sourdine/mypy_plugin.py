"""A plugin of mypy that knows which numbers a constructor takes.

`Laplace(scale=2).scale` is `Fraction(2)`: parameters are validated and kept exactly in `__post_init__`. The
type of a dataclass field is also that of its parameter, so without help mypy would refuse the 2. With

    [tool.mypy]
    plugins = ["sourdine.mypy_plugin"]

a parameter declared `Fraction` also takes an int, a float or a Decimal, in those classes of Sourdine that
validate; fields stay fractions. Nothing here is used when a program runs.
"""

from collections.abc import Callable

from mypy.nodes import Decorator, FuncDef, Var
from mypy.plugin import ClassDefContext, Plugin
from mypy.plugins.dataclasses import dataclass_class_maker_callback
from mypy.types import CallableType, Instance, Type, UnionType, flatten_nested_unions, get_proper_type

_FRACTION = "fractions.Fraction"
_ALSO = ("builtins.float", "decimal.Decimal")  # to mypy an int is a float


class ExactNumbers(Plugin):
    """Hooks the making of dataclasses, so that subclasses and `cls(...)` are known too."""

    def get_class_decorator_hook_2(self, fullname: str) -> Callable[[ClassDefContext], bool] | None:
        return _make if fullname == "dataclasses.dataclass" else None


def _make(context: ClassDefContext) -> bool:
    if not dataclass_class_maker_callback(context):
        return False
    info = context.cls.info
    if info.fullname.startswith("sourdine.") and info.get("__post_init__"):
        for name in ("__init__", "__mypy-replace"):  # the second is what `dataclasses.replace` takes
            node = info.names[name].node if name in info.names else None
            for each in (node.func, node.var) if isinstance(node, Decorator) else (node,):
                if isinstance(each, FuncDef | Var) and isinstance(each.type, CallableType):
                    types = [_wider(context, declared) for declared in each.type.arg_types]
                    each.type = each.type.copy_modified(arg_types=types)
    return True


def _wider(context: ClassDefContext, declared: Type) -> Type:
    """`declared`, with every number that becomes a Fraction if it has one."""
    items = [get_proper_type(item) for item in flatten_nested_unions([declared])]
    if not any(isinstance(item, Instance) and item.type.fullname == _FRACTION for item in items):
        return declared
    return UnionType.make_union([*items, *(context.api.named_type(name) for name in _ALSO)])


def plugin(version: str) -> type[Plugin]:
    """What mypy calls to find the plugin."""
    return ExactNumbers
