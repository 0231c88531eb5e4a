"""Plain frozen dataclasses as JSON and back, without losing a digit: what every program here writes.

Fields are Fraction, int, bool, str, Enum or None, a tuple of those, or what is declared as float, datetime,
Decimal, a mapping by texts, another dataclass, or a class that knows its own description (`to_json` and
`from_json`). A Fraction is written as '3/2'. What people write is read by pydantic (`frames.declared`).
"""

import dataclasses
import re
from abc import ABC
from collections.abc import Callable, Mapping
from copy import copy
from datetime import datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isabstract
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from sourdine.core import check
from sourdine.core.errors import InvalidParameter, UnknownName

Plain = str | int | bool | None
Json = dict[str, Any]
T = TypeVar("T")
Convert = Callable[[Any], Any]
_NUMBER = re.compile(r"-?\d{1,4000}(/\d{1,4000})?")
_DECIMAL = "decimal"


def added(default: T, name: str | None = None) -> T:
    """A field that a class got after files had been written of it; its default means what they mean.

    The default is not written, so that what depends on the old fields, such as the fingerprint of a question,
    stays as it was. Files may know the field by another name.
    """
    metadata = {"added": True, **({} if name is None else written(name))}
    if isinstance(default, dict):  # which every instance has of its own
        own: T = dataclasses.field(default_factory=lambda: copy(default), metadata=metadata)
        return own
    field: T = dataclasses.field(default=default, metadata=metadata)
    return field


def written(name: str) -> dict[str, str]:
    """The metadata of a field that files know by another name, since it was renamed after they were written.

    >>> field = dataclasses.field(metadata=written("rate"))
    >>> encoded(dataclasses.make_dataclass("Drawn", [("sampling_rate", int, field)])(1))
    {'rate': 1}
    """
    return {"written": name}


def unambiguous(pairs: list[tuple[str, Any]]) -> Json:
    """An object in a JSON text, for `object_pairs_hook`; a name that stands twice is refused.

    Programs differ in which of the two they read, so such a text would tell each of them something else.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return fields


def encoded(instance: object, *, exact: bool = False) -> Json:
    """The fields of a dataclass instance, ready for JSON.

    With `exact` all must be exact and plain: a float, such as a noise scale, is refused.
    """
    encoders = _encoders(type(instance), exact)  # type: ignore[arg-type]  # classes are hashable
    values = {field: getattr(instance, field.name) for field in dataclasses.fields(instance)}  # type: ignore[arg-type]
    return {
        _name(field): encoders[_name(field)](value)
        for field, value in values.items()
        if not field.metadata.get("added") or value != _default(field)
    }


def _default(field: "dataclasses.Field[Any]") -> object:
    make = field.default_factory
    return field.default if make is dataclasses.MISSING else make()


def decoded(kind: type[T], fields: Mapping[str, object], *, strict: bool = False) -> T:
    """The instance of a dataclass that these fields describe.

    With `strict` a text, a number or a truth must be one: bool('false') would be True, and True would pass
    for the number 1. Without it that is left to the checks of the class.
    """
    decoders = _decoders(kind, strict)  # type: ignore[arg-type]  # classes are hashable
    if unknown := sorted(set(fields) - decoders.keys()):
        raise InvalidParameter(
            f"A description of {kind.__name__} has no field '{unknown[0]}'. "
            f"Its fields are {', '.join(sorted(decoders))}."
        )
    names = {_name(field): field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    try:
        return kind(**{names[name]: decoders[name](value) for name, value in fields.items()})
    except (TypeError, ZeroDivisionError) as problem:
        message = f"A description of {kind.__name__} is incomplete or malformed."
        raise InvalidParameter(message) from problem


def _name(field: "dataclasses.Field[Any]") -> str:
    """What files call a field."""
    return str(field.metadata.get("written", field.name))


@cache
def _encoders(kind: type[Any], exact: bool) -> dict[str, Convert]:
    """How each field of a class is written; to work out its types takes longer than all the rest."""
    hints = get_type_hints(kind)
    return {_name(field): _encoder(hints[field.name], exact) for field in dataclasses.fields(kind)}


@cache
def _decoders(kind: type[Any], strict: bool) -> dict[str, Convert]:
    """How each field of a class is read."""
    hints = get_type_hints(kind)
    return {_name(field): _decoder(hints[field.name], strict) for field in dataclasses.fields(kind)}


def _choices(hint: Any) -> list[Any] | None:
    """The types that a union offers beside None; None for what is no union."""
    if get_origin(hint) not in (Union, UnionType):
        return None
    return [choice for choice in get_args(hint) if choice is not NoneType]


def _encoder(hint: Any, exact: bool = False) -> Convert:
    """How a field of this type is written."""
    if exact:
        return lambda value: list(map(_encode, value)) if isinstance(value, tuple) else _encode(value)
    if choices := _choices(hint):
        one = _encoder(choices[0]) if len(choices) == 1 else _encode_one_of(choices)
        return lambda value: None if value is None else one(value)
    origin = get_origin(hint)
    if origin is tuple:
        item = _encoder(get_args(hint)[0])
        return lambda value: [item(each) for each in value]
    if origin in (dict, Mapping):
        item = _encoder(get_args(hint)[1])
        return lambda value: {name: item(each) for name, each in value.items()}
    if hasattr(hint, "to_json"):
        return lambda value: value.to_json()
    if dataclasses.is_dataclass(hint):
        return encoded
    if hint is datetime:
        return datetime.isoformat
    if hint is Decimal:
        return lambda value: {_DECIMAL: str(value)}
    return (lambda value: value) if hint in (float, Any, object) else _encode


def _encode_one_of(choices: list[Any]) -> Convert:
    """How a value of one of several types is written: by what it is."""
    encoders = {choice: _encoder(choice) for choice in choices}

    def write(value: object) -> object:
        for kind, encoder in encoders.items():
            if isinstance(kind, type) and isinstance(value, kind):
                return encoder(value)
        return _encode(value)

    return write


def _encode(value: object) -> Plain:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Fraction):
        return str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"A field of type {type(value).__name__} has no JSON form.")


def _decoder(hint: Any, strict: bool) -> Convert:
    """How a field of this type is read; what is not of its form is left to the checks of the class."""
    if choices := _choices(hint):
        one = _decoder(choices[0], strict) if len(choices) == 1 else _decode_one_of(choices)
        return lambda value: None if value is None else one(value)
    origin = get_origin(hint)
    if origin is tuple:
        item = _decoder(get_args(hint)[0], strict)
        return partial(_sequence, item, strict)
    if origin in (dict, Mapping):
        item = _decoder(get_args(hint)[1], strict)
        return lambda value: {name: item(each) for name, each in _object(value).items()}
    if hint is Fraction:
        return _exact(str, _fraction) if strict else _fraction
    if isinstance(hint, type) and issubclass(hint, Enum):
        return partial(_member, hint)
    if hasattr(hint, "from_json"):
        return lambda value: hint.from_json(_object(value))
    if dataclasses.is_dataclass(hint):
        return lambda value: decoded(hint, _object(value), strict=strict)  # type: ignore[arg-type]
    if hint is datetime:
        return _exact(str, datetime.fromisoformat)
    if hint is Decimal:
        return lambda value: Decimal(_object(value)[_DECIMAL])
    return _exact(hint) if strict and hint in (str, int, bool, float) else lambda value: value


def _decode_one_of(choices: list[Any]) -> Convert:
    """How a value of one of several types is read: an object by its fields, anything else as it stands."""
    objects = {
        frozenset(_decoders(choice, True)): _decoder(choice, True)  # type: ignore[arg-type]
        for choice in choices
        if dataclasses.is_dataclass(choice)
    }
    objects[frozenset([_DECIMAL])] = _decoder(Decimal, True)
    if not objects.keys() - {frozenset([_DECIMAL])} and Decimal not in choices:
        return _decoder(choices[0], False)

    def read(value: Any) -> Any:
        return objects[frozenset(value)](value) if isinstance(value, Mapping) else value

    return read


def _exact(kind: type[Any], then: Convert = lambda value: value) -> Convert:
    """A value of exactly this type, and what becomes of it."""

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"not a {kind.__name__}")
        return then(value)

    return read


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError("not an object")
    return value


def _sequence(item: Convert, strict: bool, value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(map(item, value))
    if strict:
        raise TypeError("not a list")
    return value


def _fraction(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not _NUMBER.fullmatch(value):
        raise InvalidParameter("A number in a description must read like '3/2'.")
    above, _, below = value.partition("/")
    return Fraction(int(above), int(below or 1))


def _member(kind: type[Enum], value: object) -> Enum:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(choice.value) for choice in kind)
        raise InvalidParameter(f"A {kind.__name__} in a description must be one of {choices}.") from None


# Names that last: what ledgers, certificates and questions call a class, wherever it is kept.
#
# A name is of the field and has a version, such as "laplace/1". The version is the meaning: a new field has
# a default that means what was (`codec.added`); a class that loses otherwise is "/2", and "/1" stays
# readable. A class that is moved or renamed changes its one line in `TABLE`.


TABLE: dict[str, str] = {
    "above-threshold/1": "sourdine.mechanisms.sparse_vector:AboveThreshold",
    "bounded-laplace/1": "sourdine.mechanisms.bounded_laplace:BoundedLaplace",
    "bounded-staircase/1": "sourdine.mechanisms.bounded_staircase:BoundedStaircase",
    "correlated-gaussian/1": "sourdine.mechanisms.correlated:CorrelatedGaussian",
    "correlated-laplace/1": "sourdine.mechanisms.correlated:CorrelatedLaplace",
    "exponential/1": "sourdine.mechanisms.selection:Exponential",
    "finite-pair/1": "sourdine.mechanisms.finite_pair:FinitePair",
    "gaussian/1": "sourdine.mechanisms.gaussian:Gaussian",
    "geometric/1": "sourdine.mechanisms.geometric:Geometric",
    "laplace/1": "sourdine.mechanisms.laplace:Laplace",
    "partition-threshold/1": "sourdine.mechanisms.partition_selection:PartitionThreshold",
    "permute-and-flip/1": "sourdine.mechanisms.selection:PermuteAndFlip",
    "randomized-response/1": "sourdine.mechanisms.randomized_response:KaryResponse",
    "rounded-gaussian/1": "sourdine.mechanisms.rounded_gaussian:RoundedGaussian",
    "sparse-vector/1": "sourdine.mechanisms.sparse_vector:SparseVector",
    "staircase/1": "sourdine.mechanisms.staircase:Staircase",
    "top-k/1": "sourdine.mechanisms.top_k:TopK",
    "truncated-geometric/1": "sourdine.mechanisms.truncated_geometric:TruncatedGeometric",
    "two-coins/1": "sourdine.mechanisms.randomized_response:TwoCoins",
    "warner/1": "sourdine.mechanisms.randomized_response:Warner",
    "best-of-runs/1": "sourdine.learning.selecting.best_of_runs:BestOfRuns",
    "noisy-gradient/1": "sourdine.learning.noise.noisy_gradient:NoisyGradient",
    "bounded-laplace-oracle/1": "sourdine.local.numeric.bounded:BoundedLaplaceOracle",
    "bounded-staircase-oracle/1": "sourdine.local.numeric.bounded:BoundedStaircaseOracle",
    "duchi/1": "sourdine.local.numeric.duchi:Duchi",
    "grr/1": "sourdine.local.frequency.hashing:GRR",
    "hadamard/1": "sourdine.local.frequency.hadamard:HadamardResponse",
    "hybrid/1": "sourdine.local.numeric.piecewise:Hybrid",
    "olh/1": "sourdine.local.frequency.hashing:OLH",
    "oue/1": "sourdine.local.frequency.unary:OUE",
    "piecewise/1": "sourdine.local.numeric.piecewise:Piecewise",
    "projective-geometry/1": "sourdine.local.frequency.projective:ProjectiveGeometry",
    "square-wave/1": "sourdine.local.numeric.piecewise:SquareWave",
    "subset-selection/1": "sourdine.local.frequency.subset:SubsetSelection",
    "sue/1": "sourdine.local.frequency.unary:SUE",
    "basic-one-time-rappor/1": "sourdine.local.rappor.basic:BasicOneTimeRappor",
    "basic-rappor/1": "sourdine.local.rappor.basic:BasicRappor",
    "one-time-rappor/1": "sourdine.local.rappor.rappor:OneTimeRappor",
    "rappor/1": "sourdine.local.rappor.rappor:Rappor",
    "word-tree/1": "sourdine.local.words.tree:WordTree",
    "inverse-sensitivity/1": "sourdine.tables.quantiles.inverse:InverseSensitivity",
    "joint-exponential/1": "sourdine.tables.quantiles.joint:JointExponential",
    "naive-laplace/1": "sourdine.tables.quantiles.histogram:NaiveLaplace",
    "recursive-quantiles/1": "sourdine.tables.quantiles.recursive:RecursiveQuantiles",
    "threshold-histogram/1": "sourdine.tables.quantiles.histogram:ThresholdHistogram",
    "fixed-size/1": "sourdine.accounting.subsampling.samplers:FixedSize",
    "poisson/1": "sourdine.accounting.subsampling.samplers:Poisson",
    "poisson-group/1": "sourdine.accounting.subsampling.samplers:PoissonGroup",
    "poisson-replace/1": "sourdine.accounting.subsampling.samplers:PoissonReplace",
    "random-allocation/1": "sourdine.accounting.subsampling.samplers:RandomAllocation",
    "shuffled/1": "sourdine.accounting.subsampling.samplers:Shuffled",
    "truncated-poisson/1": "sourdine.accounting.subsampling.samplers:TruncatedPoisson",
}

# What version 0.1 wrote, by folder and class: read for ever, and no longer written. Of several earlier names
# of one class the first stands first, since identities depend on it.
ALIASES: dict[str, str] = {
    "mechanisms.AboveThreshold": "above-threshold/1",
    "mechanisms.BoundedLaplace": "bounded-laplace/1",
    "mechanisms.BoundedStaircase": "bounded-staircase/1",
    "mechanisms.Exponential": "exponential/1",
    "mechanisms.Gaussian": "gaussian/1",
    "mechanisms.Geometric": "geometric/1",
    "mechanisms.KaryResponse": "randomized-response/1",
    "mechanisms.KeyThreshold": "partition-threshold/1",
    "mechanisms.Laplace": "laplace/1",
    "mechanisms.PermuteAndFlip": "permute-and-flip/1",
    "mechanisms.SparseVector": "sparse-vector/1",
    "mechanisms.Staircase": "staircase/1",
    "mechanisms.TopK": "top-k/1",
    "mechanisms.TruncatedGeometric": "truncated-geometric/1",
    "mechanisms.TwoCoins": "two-coins/1",
    "mechanisms.Warner": "warner/1",
    "learning.NoisyGradient": "noisy-gradient/1",
    "local.BoundedLaplaceOracle": "bounded-laplace-oracle/1",
    "local.BoundedStaircaseOracle": "bounded-staircase-oracle/1",
    "local.Duchi": "duchi/1",
    "local.HadamardResponse": "hadamard/1",
    "local.Hybrid": "hybrid/1",
    "local.KaryOracle": "grr/1",
    "local.LocalHashing": "olh/1",
    "local.OptimalUnary": "oue/1",
    "local.Piecewise": "piecewise/1",
    "local.ProjectiveGeometry": "projective-geometry/1",
    "local.SquareWave": "square-wave/1",
    "local.SubsetSelection": "subset-selection/1",
    "local.SymmetricUnary": "sue/1",
    "local.rappor.BasicOneTimeRappor": "basic-one-time-rappor/1",
    "local.rappor.BasicRappor": "basic-rappor/1",
    "local.rappor.OneTimeRappor": "one-time-rappor/1",
    "local.rappor.Rappor": "rappor/1",
    "tables.quantiles.InverseSensitivity": "inverse-sensitivity/1",
    "tables.quantiles.JointExponential": "joint-exponential/1",
    "tables.quantiles.NaiveLaplace": "naive-laplace/1",
    "tables.quantiles.RecursiveQuantiles": "recursive-quantiles/1",
    "tables.quantiles.ThresholdHistogram": "threshold-histogram/1",
    "FixedSize": "fixed-size/1",
    "Poisson": "poisson/1",
    "Shuffled": "shuffled/1",
}

GROUP = "sourdine.mechanisms"  # the entry points by which an installed package offers its own
_MOST = 200
_PART = r"[a-z0-9]+(-[a-z0-9]+)*"
_OURS = re.compile(rf"{_PART}/[1-9][0-9]{{0,3}}")
_THEIRS = re.compile(rf"({_PART}\.)+{_PART}/{_PART}/[1-9][0-9]{{0,3}}")
_registered: dict[str, "type[Named]"] = {}


class Named(ABC):
    """What files name: frozen dataclasses that are written by name and fields, and read back as equals."""

    name: ClassVar[str]
    _key: ClassVar[str]  # under which the name is written

    def to_json(self) -> Json:
        """A description that `from_json` turns back into an equal one; a class without a name is refused."""
        name = name_of(type(self))
        try:
            return {self._key: name} | encoded(self, exact=True)
        except TypeError as problem:
            raise InvalidParameter(
                f"A field of {type(self).__name__} has no exact form in a file. Keep its numbers as int or "
                "Fraction, and all else as str, bool, Enum, None or tuples of those."
            ) from problem

    @classmethod
    def from_json(cls, description: Mapping[str, object]) -> Self:
        """What a description names; only names of this package and registered ones are ever looked up."""
        kind = class_of(description.get(cls._key))
        if not issubclass(kind, cls):
            raise InvalidParameter(f"The description is of a {kind.__name__}, not of a {cls.__name__}.")
        return decoded(kind, {name: value for name, value in description.items() if name != cls._key})


K = TypeVar("K", bound=type[Named])


def class_of(name: object) -> type[Named]:
    """The class that a name stands for, or an earlier name of it; imported when it is first asked for.

    >>> class_of("laplace/1") is class_of("mechanisms.Laplace")
    True
    """
    known = ALIASES.get(name, name) if isinstance(name, str) else ""
    if known in TABLE:
        module, _, attribute = TABLE[known].partition(":")
        kind: type[Named] = getattr(import_module(module), attribute)
        return kind
    if len(known) <= _MOST and _THEIRS.fullmatch(known):
        return _theirs(known)
    if len(known) <= _MOST and _OURS.fullmatch(known):
        raise UnknownName(
            f"The name '{known}' is unknown to this version of Sourdine. A later one has written it. "
            "Install that version, and read it again."
        )
    raise InvalidParameter(
        "A description of a mechanism or a sampling must name one of this package, such as 'laplace/1'."
    )


def name_of(kind: type[Named]) -> str:
    """The name that files know a class by; one that inherits its name has none of its own.

    >>> from sourdine.mechanisms import Laplace
    >>> name_of(Laplace)
    'laplace/1'
    """
    stated = vars(kind).get("name")
    if isinstance(stated, str) and stated in TABLE and class_of(stated) is kind:
        return stated
    for name, registered in _registered.items():
        if registered is kind:
            return name
    remedy = "Register it first: @sourdine.core.serialization.register('your.domain/its-name/1')."
    if _is_of_package(kind):
        remedy = (
            "Add its line to TABLE in core/serialization.py, and state that name in the class as its 'name'."
        )
    raise InvalidParameter(
        f"{kind.__name__} has no name that a file could keep, so it is neither written nor charged. {remedy}"
    )


def first_name(name: str) -> str:
    """What files first called it: the alias of version 0.1, or the name itself if it came later.

    >>> first_name("grr/1"), first_name("acme.example/tail-noise/1")
    ('local.KaryOracle', 'acme.example/tail-noise/1')
    """
    return next((alias for alias, known in ALIASES.items() if known == name), name)


def is_ours(name: str) -> bool:
    """Whether a name is of this package, whose claims it proves and audits."""
    return name in TABLE


def register(name: str) -> Callable[[K], K]:
    """Name a mechanism of your own, so that it can be charged: `@register("acme.example/tail-noise/1")`.

    The name begins with a domain of yours, so that it is never one of this package. Its version is the
    meaning: files are read by it for ever, so a class that loses otherwise is given the next one.
    Certificates and pages show that it is not of this package: what it loses is the word of its author.
    """
    text: object = name
    if not isinstance(text, str) or len(text) > _MOST or not _THEIRS.fullmatch(text):
        must = "be a domain of yours, a name and a version, in small letters, digits and hyphens"
        raise check.fail("register", "name", must, name, "Such as 'acme.example/tail-noise/1'.")

    def registered(kind: K) -> K:
        _check_class(kind)
        holder = _registered.get(name)
        if holder is not None and _place(holder) != _place(kind):  # a cell of a notebook may be run again
            raise InvalidParameter(
                f"The name '{name}' is taken by another class, {holder.__name__}. Files would mean either. "
                "Give each class a name of its own."
            )
        if other := [known for known, each in _registered.items() if each is kind and known != name]:
            raise InvalidParameter(
                f"{kind.__name__} is registered as '{other[0]}' already. A class has one name. Leave one out."
            )
        _registered[name] = kind
        return kind

    return registered


def _theirs(name: str) -> type[Named]:
    """The class registered by a name, perhaps only now by an installed package that offers it."""
    if name not in _registered:
        for point in entry_points(group=GROUP, name=name):
            try:
                point.load()
            except (ImportError, AttributeError) as problem:
                raise UnknownName(
                    f"The name '{name}' is not of this package, and {point.value}, which is installed for "
                    "it, cannot be imported. Mend the package that offers it."
                ) from problem
    if name not in _registered:
        raise UnknownName(
            f"The name '{name}' is not of this package, and nothing here has registered it. Import "
            "the module that registers it by sourdine.core.serialization.register, or install its package."
        )
    return _registered[name]


def _check_class(kind: object) -> None:
    if not isinstance(kind, type) or not issubclass(kind, Named) or isabstract(kind):
        raise check.fail("register", "class", "be a Mechanism with all its methods", kind)
    stated = vars(kind).get("__dataclass_params__")  # its own: what it inherits knows nothing of its fields
    if stated is None or not stated.frozen:
        remedy = "Put @dataclass(frozen=True, kw_only=True) under @register."
        raise check.fail("register", "class", "be a frozen dataclass", kind, remedy)
    if _is_of_package(kind):
        raise check.fail("register", "class", "be your own", kind, "Those of this package have their names.")


def _is_of_package(kind: type[Named]) -> bool:
    return kind.__module__.partition(".")[0] == "sourdine"


def _place(kind: type[Named]) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__
