from pathlib import Path

import numpy as np
import pytest

from sourdine.anonymity import (
    Coded,
    DatePrecision,
    Dates,
    GeneralisationHierarchy,
    Intervals,
    Prefixes,
    Suppression,
    Tree,
    read_hierarchies,
)
from sourdine.anonymity.hierarchy import usual_hierarchy
from sourdine.core.errors import InvalidParameter


def column(*labels: str | None, name: str = "c") -> Coded:
    return Coded(name, labels, np.arange(len(labels)))


ALL: list[tuple[GeneralisationHierarchy, Coded]] = [
    (Suppression(), column("a", "b", None)),
    (Tree({"a": ("x", "*"), "b": ("x", "*"), "d": ("y", "*")}), column("a", "b", None)),
    (Intervals(0, 100, (5, 10, 50)), column("3", "17", "99.5", "100", None)),
    (Prefixes((4, 2)), column("25000", "25170", "7", None)),
    (Dates(), column("1984-02-29", "1985-07-14 10:00:00", None)),
    (Intervals.over(column("17", "90")), column("17", "55", "90")),
]


@pytest.mark.parametrize(("hierarchy", "held"), ALL, ids=lambda each: type(each).__name__)
def test_every_ladder_gets_coarser_and_ends_in_one_label(
    hierarchy: GeneralisationHierarchy, held: Coded
) -> None:
    ladder = hierarchy.ladder(held)
    assert ladder.label(0) == list(held.labels)
    assert set(ladder.label(ladder.height)) == {"*"}
    for below, above in zip(ladder.codes, ladder.codes[1:], strict=False):
        for code in set(below):
            assert len(set(above[below == code])) == 1
    assert np.all(np.diff(ladder.losses, axis=0) >= 0)
    assert np.all(ladder.losses[0] == 0)
    assert np.all(ladder.losses[-1] == 1)


def test_intervals_and_their_losses() -> None:
    ladder = Intervals(0, 100, (5, 20)).ladder(column("3", "17", "19", "250"))
    assert ladder.label(1) == ["0-4", "15-19", "15-19", ">100"]
    assert ladder.label(2) == ["0-19", "0-19", "0-19", ">100"]
    assert ladder.losses[1].tolist() == [0.04, 0.04, 0.04, 1.0]  # four other values of a hundred
    reals = Intervals(0, 1, (0.25, 0.5)).ladder(column("0.1", "0.3"))
    assert reals.label(1) == ["[0, 0.25)", "[0.25, 0.5)"]
    assert reals.losses[2].tolist() == [0.5, 0.5]


def test_dates_prefixes_and_trees() -> None:
    days = column("1984-02-29", "1985-07-14", "1991-11-02")
    ladder = Dates(
        (DatePrecision.MONTH, DatePrecision.QUARTER, DatePrecision.YEAR, DatePrecision.DECADE)
    ).ladder(days)
    assert [ladder.label(level)[0] for level in range(6)] == [
        "1984-02-29", "1984-02", "1984-Q1", "1984", "1980s", "*",
    ]  # fmt: skip
    assert Prefixes((3, 2)).ladder(column("25000", "25170")).label(1) == ["250**", "251**"]
    # losses count all values of the tree, also those that do not occur
    tree = Tree({"a": ("x",), "b": ("x",), "d": ("y",), "e": ("y",), "f": ("y",)})
    assert tree.ladder(column("a", "d")).losses[1].tolist() == [0.25, 0.5]
    assert tree.ladder(column("a", "d")).height == 2  # a root is added


def test_a_folder_of_trees(tmp_path: Path) -> None:
    (tmp_path / "adult_hierarchy_age.csv").write_text("1;0-4;*\n2;0-4;*\n", encoding="utf-8-sig")
    found = read_hierarchies(tmp_path, ["age", "sex"])
    assert list(found) == ["age"]
    assert found["age"].ladder(column("1.0", "2")).label(1) == ["0-4", "0-4"]
    (tmp_path / "other-age.csv").write_text("1;*\n")
    with pytest.raises(InvalidParameter, match="Two files"):
        read_hierarchies(tmp_path, ["age"])
    (tmp_path / "age.csv").write_text("1;*\n")
    assert read_hierarchies(tmp_path, ["age"])["age"].ladder(column("1")).height == 1


def test_what_is_usual() -> None:
    assert isinstance(usual_hierarchy(column("1", "2.5", None)), Intervals)
    assert isinstance(usual_hierarchy(column("2024-01-31", None)), Dates)
    assert isinstance(usual_hierarchy(column("a", "2")), Suppression)
    assert usual_hierarchy(column("7")).ladder(column("7")).label(4)[0] != "*"


def test_bad_hierarchies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="misses 1 of the 2 values"):
        Tree({"a": ("*",)}).ladder(column("a", "SECRET"))
    with pytest.raises(InvalidParameter) as told:
        Tree({"a": ("*",)}).ladder(column("a", "SECRET"))
    assert "SECRET" not in str(told.value)
    with pytest.raises(InvalidParameter, match="no tree"):
        Tree({"a": ("x", "u"), "b": ("x", "v")}).ladder(column("a", "b"))
    with pytest.raises(InvalidParameter, match="same number of levels"):
        Tree({"a": ("x",), "b": ("x", "*")})
    with pytest.raises(InvalidParameter, match="at least one value"):
        Tree({})
    path = tmp_path / "h.csv"
    path.write_text("a;x\na;y\n")
    with pytest.raises(InvalidParameter, match="two unlike lines"):
        Tree.read(path)
    path.write_text("")
    with pytest.raises(InvalidParameter, match="cannot be used"):
        Tree.read(path)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        Tree.read(tmp_path / "none.csv")
    with pytest.raises(InvalidParameter, match="multiple of the one before"):
        Intervals(0, 10, (2, 3))
    with pytest.raises(InvalidParameter, match="above the lower bound"):
        Intervals(10, 0, (2,))
    with pytest.raises(InvalidParameter, match="not all of its values are numbers"):
        Intervals(0, 10, (2,)).ladder(column("a"))
    with pytest.raises(InvalidParameter, match="fall"):
        Prefixes((2, 4))
    with pytest.raises(InvalidParameter, match="shorter to longer"):
        Dates((DatePrecision.YEAR, DatePrecision.MONTH))
    with pytest.raises(InvalidParameter, match="like 2024-05-31"):
        Dates().ladder(column("31.5.2024"))
    with pytest.raises(InvalidParameter, match="no folder"):
        read_hierarchies(tmp_path / "none", ["a"])
