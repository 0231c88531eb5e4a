"""Names outlast folders and classes, and nothing is read or written by anything else."""

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from sourdine.accounting import (
    FixedSize,
    Poisson,
    PoissonGroup,
    PoissonReplace,
    RandomAllocation,
    Sampling,
    Shuffled,
    TruncatedPoisson,
)
from sourdine.core import serialization as registry
from sourdine.core.errors import InvalidParameter, UnknownName
from sourdine.core.mechanism import Mechanism
from sourdine.core.serialization import ALIASES, TABLE, Named, added, class_of, first_name, name_of, register
from sourdine.local import GRR
from sourdine.mechanisms import Laplace
from tests import contract
from tests.errors import refusal_of
from tests.mutants.mutant import Mutant
from tests.own_mechanism import NAME, RoundedCount, Unregistered

GOLDEN = Path(__file__).parent.parent / "golden" / "0.1" / "names.json"
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*/[1-9][0-9]*")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in which nothing was registered."""
    monkeypatch.setattr(registry, "_registered", {})


SAMPLINGS = [
    FixedSize,
    Poisson,
    PoissonGroup,
    PoissonReplace,
    RandomAllocation,
    Shuffled,
    TruncatedPoisson,
]


@pytest.mark.parametrize("name", TABLE)
def test_a_name_leads_to_its_class_and_back(name: str) -> None:
    kind = class_of(name)
    assert kind.name == name
    assert name_of(kind) == name
    assert KEBAB.fullmatch(name)
    assert TABLE[name] == f"{kind.__module__}:{kind.__qualname__}"


def test_every_mechanism_and_sampling_has_one_name() -> None:
    kinds = [*contract.mechanisms(), *SAMPLINGS]
    assert Counter(map(class_of, TABLE)) == Counter(kinds)
    assert len(TABLE) == len(set(TABLE.values()))
    assert len(ALIASES) == len(set(ALIASES.values())) == 42  # those of version 0.1, and none since
    assert set(ALIASES.values()) <= set(TABLE)


def subclasses(kind: type) -> Iterator[type]:
    children: list[type] = kind.__subclasses__()
    for each in children:
        yield each
        yield from subclasses(each)


def test_no_class_of_the_package_is_forgotten() -> None:
    for room in ("accounting", "learning", "local", "mechanisms", "tables"):
        package = importlib.import_module(f"sourdine.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"sourdine.{room}."):
            importlib.import_module(module.name)
    found = {
        kind
        for kind in subclasses(Named)
        if kind.__module__.startswith("sourdine.") and not inspect.isabstract(kind)
        if vars(sys.modules.get(kind.__module__, object)).get(kind.__name__) is kind  # and no test's
    }
    broken = {kind for kind in found if kind.__module__.startswith("sourdine.audit.")}
    assert {kind.__name__ for kind in broken} <= {"Resampled"}
    assert found - broken == set(map(class_of, TABLE))


def test_the_names_of_version_0_1_are_read_for_ever() -> None:
    held = json.loads(GOLDEN.read_text(encoding="utf-8"))
    wrote = {each["mechanism"]["mechanism"] for each in held["mechanisms"]}
    wrote |= {each["spend"]["sampling"]["sampling"] for each in held["samplings"]}
    assert wrote == set(ALIASES)
    for alias, name in ALIASES.items():
        assert class_of(alias) is class_of(name)
        assert alias.rpartition(".")[2] != name
        assert first_name(name) == alias


def test_names_are_written_and_both_are_read() -> None:
    noise = Laplace(scale=3)
    assert noise.to_json() == {"mechanism": "laplace/1", "scale": "3", "granularity": None}
    assert Mechanism.from_json({"mechanism": "mechanisms.Laplace", "scale": "3"}) == noise
    drawn = Poisson(sampling_rate=Fraction(1, 2))
    assert drawn.to_json() == {"sampling": "poisson/1", "rate": "1/2"}
    assert Sampling.from_json({"sampling": "Poisson", "rate": "1/2"}) == drawn


@pytest.mark.parametrize(
    "name",
    [
        "Laplace",
        "laplace",
        "laplace/1 ",
        "Laplace/1",
        "laplace/01",
        "mechanisms.laplace.Laplace",
        "sourdine.mechanisms.laplace:Laplace",
        "mechanisms.Selection",
        "os.system",
        "",
        5,
        None,
        ["laplace/1"],
        "a" * 300 + "/1",
    ],
)
def test_nothing_else_is_looked_up(name: object) -> None:
    with pytest.raises(InvalidParameter, match="must name one of this package") as caught:
        Mechanism.from_json({"mechanism": name, "scale": "1"})
    assert not isinstance(caught.value, UnknownName)


def test_a_sampling_is_no_mechanism() -> None:
    with pytest.raises(InvalidParameter, match="of a Poisson, not of a Mechanism"):
        Mechanism.from_json({"mechanism": "poisson/1", "rate": "1/2"})
    with pytest.raises(InvalidParameter, match="of a Laplace, not of a Sampling"):
        Sampling.from_json({"sampling": "laplace/1", "scale": "1"})


def test_a_later_version_of_a_name_says_so() -> None:
    with pytest.raises(UnknownName, match=r"'laplace/2' is unknown to this version.*later"):
        Mechanism.from_json({"mechanism": "laplace/2", "scale": "1"})


def test_a_class_that_is_moved_and_renamed_changes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    before = GRR(epsilon=1, categories=3)
    identity = before.identity
    source = Path(inspect.getfile(GRR)).read_text(encoding="utf-8")
    moved = ModuleType("sourdine.elsewhere")
    monkeypatch.setitem(sys.modules, moved.__name__, moved)
    exec(source.replace("GRR", "Other"), moved.__dict__)
    monkeypatch.setitem(TABLE, "grr/1", "sourdine.elsewhere:Other")
    written = {"mechanism": "local.KaryOracle", "epsilon": "1", "categories": 3}
    for name in ("grr/1", "local.KaryOracle"):
        after = Mechanism.from_json(written | {"mechanism": name})
        assert type(after) is moved.__dict__["Other"]
        assert after.to_json() == written | {"mechanism": "grr/1"}
        assert after.identity == identity  # type: ignore[attr-defined]
    with pytest.raises(InvalidParameter, match="no name"):
        before.to_json()  # the name is another's now


def test_a_broken_mechanism_of_the_audit_is_never_written() -> None:
    honest = next(Laplace.examples())
    mutant = Mutant(name="none", fault="no noise", honest=honest, sampler=lambda values, _: values)
    with pytest.raises(InvalidParameter, match="Resampled has no name"):
        mutant.broken.mechanism.to_json()


def test_an_inherited_name_is_none() -> None:
    class Louder(Laplace):
        pass

    with pytest.raises(InvalidParameter, match=r"Louder has no name .* Register it first"):
        Louder(scale=1).to_json()
    with pytest.raises(InvalidParameter, match="Unregistered has no name"):
        Unregistered(scale=Fraction(1)).to_json()


# mechanisms of others


def test_a_registered_mechanism_goes_through_json() -> None:
    made = RoundedCount(scale=Fraction(7, 2), step=5)
    assert made.to_json() == {"mechanism": NAME, "scale": "7/2", "step": 5}
    assert contract.through_json(made) == made
    assert not registry.is_ours(NAME)
    assert first_name(NAME) == NAME


@pytest.mark.parametrize(
    "name",
    [
        "tail-noise/1",
        "laplace/1",
        "acme/tail-noise/1",
        "acme.example/tail-noise",
        "acme.example/tail-noise/0",
        "acme.example/tail-noise/01",
        "acme.example/Tail/1",
        "acme.example/tail noise/1",
        "acme.example//1",
        ".example/tail/1",
        "acme.example/tail/1\n",
        "acme.example/" + "a" * 200 + "/1",
        "",
        None,
    ],
)
def test_a_name_of_others_has_a_domain_and_a_version(name: str) -> None:
    with refusal_of("name", "register"):
        register(name)


def test_what_cannot_be_registered(alone: None) -> None:
    class Bare(Unregistered):
        pass

    @dataclass
    class Warm:
        scale: int

    for kind, words in [
        (Bare, "be a frozen dataclass"),
        (Warm, "be a Mechanism"),
        (Mechanism, "be a Mechanism with all its methods"),
        (Laplace, "be your own"),
        (RoundedCount(scale=Fraction(1)), "be a Mechanism"),
    ]:
        with pytest.raises(InvalidParameter, match=words):
            register(NAME)(kind)  # type: ignore[type-var]


def test_a_name_has_one_class_and_a_class_one_name(alone: None) -> None:
    register(NAME)(RoundedCount)
    register(NAME)(RoundedCount)
    with pytest.raises(InvalidParameter, match="taken by another class, RoundedCount"):
        register(NAME)(Unregistered)
    with pytest.raises(InvalidParameter, match=rf"registered as '{NAME}' already"):
        register("acme.example/other/1")(RoundedCount)


def test_a_cell_that_is_run_again_takes_the_name_over(alone: None) -> None:
    def cell() -> type[Unregistered]:
        @register(NAME)
        @dataclass(frozen=True, kw_only=True)
        class Mine(Unregistered):
            pass

        return Mine

    first, second = cell(), cell()
    assert class_of(NAME) is second
    with pytest.raises(InvalidParameter, match="Mine has no name"):
        name_of(first)


def test_a_class_of_this_package_without_a_line_says_where_it_goes() -> None:
    ours = type("Tail", (Laplace,), {"__module__": "sourdine.mechanisms.tail"})
    with pytest.raises(
        InvalidParameter, match=r"Tail has no name.*its line to TABLE in core/serialization\.py"
    ):
        name_of(ours)


def test_a_name_that_nobody_registered_says_how(alone: None) -> None:
    with pytest.raises(UnknownName, match=rf"'{NAME}' is not of this package.*serialization\.register"):
        Mechanism.from_json({"mechanism": NAME, "scale": "1"})


@pytest.mark.parametrize(("value", "good"), [("acme_counts:Mine", True), ("acme_counts:Nothing", False)])
def test_an_installed_package_offers_its_mechanisms(
    alone: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, good: bool
) -> None:
    (tmp_path / "acme_counts.py").write_text(
        "from dataclasses import dataclass\n"
        "from sourdine.core.serialization import register\n"
        "from tests.own_mechanism import Unregistered\n"
        f"@register('{NAME}')\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Mine(Unregistered): pass\n"
    )
    kept = tmp_path / "acme_counts-1.0.dist-info"
    kept.mkdir()
    (kept / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-counts\nVersion: 1.0\n")
    (kept / "entry_points.txt").write_text(f"[sourdine.mechanisms]\n{NAME} = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_counts", raising=False)
    if good:
        made = Mechanism.from_json({"mechanism": NAME, "scale": "3"})
        assert type(made).__module__ == "acme_counts"
        assert made.to_json()["mechanism"] == NAME
    else:
        with pytest.raises(UnknownName, match=r"acme_counts:Nothing.*cannot be imported"):
            Mechanism.from_json({"mechanism": NAME, "scale": "3"})


def test_a_field_without_an_exact_form_is_refused(alone: None) -> None:
    @register("acme.example/loose/1")
    @dataclass(frozen=True, kw_only=True)
    class Loose(Unregistered):
        tail: float = 0.5

    with pytest.raises(InvalidParameter, match=r"field of Loose has no exact form.*Fraction"):
        Loose(scale=Fraction(1)).to_json()


def test_a_new_field_leaves_what_was_written_as_it_was(alone: None) -> None:
    @register(NAME)
    @dataclass(frozen=True, kw_only=True)
    class Grown(Unregistered):
        name: ClassVar[str] = "of no matter here"
        shift: int = added(0)

    old = {"mechanism": NAME, "scale": "1", "step": 10}
    assert Mechanism.from_json(old) == Grown(scale=Fraction(1), shift=0)
    assert Grown(scale=Fraction(1)).to_json() == old
    moved = Grown(scale=Fraction(1), shift=3)
    assert moved.to_json() == old | {"shift": 3}
    assert contract.through_json(moved) == moved


def test_the_table_is_read_without_importing_anything() -> None:
    source = Path(inspect.getfile(registry)).read_text(encoding="utf-8")
    imported = set(re.findall(r"^(?:from|import) (sourdine\S*)", source, re.MULTILINE))
    assert imported <= {"sourdine.core", "sourdine.core.errors", "sourdine.core.serialization"}
