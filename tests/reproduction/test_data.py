from pathlib import Path

import numpy as np
import pytest
import torch

from sourdine.core.errors import InvalidParameter
from sourdine.learning.features import vgg
from sourdine_reproduction.cache import run_or_read
from sourdine_reproduction.data import SALARY, data_sentence, origins_of, read_numbers, unused_in
from sourdine_reproduction.heads.setting import read_examples, squares
from sourdine_reproduction.quantiles.salaries import PUBLISHED, SIZE, register, salaries
from sourdine_reproduction.registry import Experiment, Result, Settings
from tests.learning.data_files import write_flowers, write_images
from tests.learning.idx_files import write_digits

SMALL = ((2,), (3,), (4,), (4,), (6,))
HEADER = (
    "Authority Name,Fiscal Year End Date,Has Employees,Last Name,Middle Initial,First Name,Title,Group,"
    "Department,Pay Type,Exempt Indicator,Base Annualized Salary,Actual Salary Paid,Overtime Paid,"
    "Performance Bonus,Extra Pay,Other Compensation,Total Compensation,"
    "Paid By Another Entity,Paid by State or Local Government"
)


def salary_file(path: Path, pay: list[str], mark: str = ",") -> Path:
    """As the authorities publish it; the source's own copy had semicolons."""
    rows = [
        ["Agency", "12/31/2020", "", "Doe", "", "Jo", '"Clerk, senior"', "Other", "", "FT", "N", each]
        for each in pay
    ]
    lines = [
        HEADER.replace(",", mark),
        *(mark.join([*row, "1.00", "", "", "", "", "", "N", ""]) for row in rows),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "mark", "pay"),
    [
        ("Salary_Information_for_Local_Authorities.csv", ",", ["26208.00", "", '"30,073.40"', "$5", "2e9"]),
        ("salaries/salaries.csv", ";", ["26,208.00", "", "30,073.40", "5", "2e9"]),
        ("Salary_Information_for_Local_Authorities_20240131.csv", ",", ["26208", "", "30073.4", "5", "2e9"]),
    ],
)
def test_salaries_are_read_as_published(tmp_path: Path, name: str, mark: str, pay: list[str]) -> None:
    salary_file(tmp_path / name, pay, mark)
    assert salaries(tmp_path).tolist() == [5, 26_208, 30_073, 1_000_000]
    assert (
        data_sentence("quantiles", tmp_path)
        == f"Real data: the salaries of New York, from {tmp_path / name}."
    )


def test_without_the_file_a_register_stands_in(tmp_path: Path) -> None:
    assert np.array_equal(salaries(tmp_path), register(SIZE))
    assert data_sentence("quantiles", tmp_path).startswith(
        "STAND-IN: the salaries of New York are not at hand"
    )


def test_salaries_of_the_file_are_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sourdine_reproduction.quantiles import salaries as figure

    monkeypatch.setattr(figure, "EPSILONS", (0.5,))
    salary_file(tmp_path / "salaries.csv", [f"{each:.2f}" for each in register(500)])
    part = figure.reproduce(Settings(quick=True, data=tmp_path))
    said = part.section.paragraphs[0]
    assert said.startswith(
        "These are 500 salaries of the file that the source names. Their deciles are 34,902, "
    )
    assert f"{PUBLISHED[8]:,}" in said
    assert part.section.tables[0].title.startswith("500 salaries")


@pytest.mark.parametrize(
    "raw", [b"", b"\xff\xfe\x00", b"a,b\n1,2\n", b"Base Annualized Salary\nmany\n", b"1\n2,3\n"]
)
def test_tables_of_something_else_are_told_in_a_sentence(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "salaries.csv"
    path.write_bytes(raw)
    with pytest.raises(
        InvalidParameter, match="is no table with numbers in the columns Base Annualized Salary"
    ):
        read_numbers(path, (SALARY,))
    (tmp_path / "diabetes.csv").write_text("1,2,3\n")
    with pytest.raises(InvalidParameter, match=r"and 768 rows\. Fetch it again, or take it away"):
        read_numbers(tmp_path / "diabetes.csv", ("a", "b", "c"), size=768)


def test_digits_are_found_as_downloaded_and_as_torchvision_lays_them_down(tmp_path: Path) -> None:
    assert origins_of("mnist", tmp_path)[0].place is None
    for name in ("MNIST/raw", "mnist"):
        folder = write_digits(tmp_path / name, 5, 5)
        assert origins_of("mnist", tmp_path)[0].place == folder
    assert origins_of("mnist", folder)[0].place == folder / "."
    assert "the digits of MNIST in" in data_sentence("learning", tmp_path)


def test_heads_learn_from_flowers_where_both_parts_are_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vgg.BLOCKS, 16, SMALL)
    write_flowers(tmp_path / "102flowers")
    settings = Settings(quick=True, data=tmp_path)
    assert "made-up images" in data_sentence("learning", tmp_path)  # without weights
    torch.save(vgg.VGG(classes=3, hidden=(2,), blocks=SMALL).state_dict(), tmp_path / "vgg16-397923af.pth")
    assert data_sentence("learning", tmp_path).startswith(
        "Real data: 102 flowers with the weights of VGG16, from "
    )
    examples = read_examples(settings)
    assert (len(examples.train), len(examples.test)) == (8, 16)  # most are learnt from, as in the source
    assert examples.train.shape == (6 * 3 * 3,)
    assert "8 of 102 flowers to learn from" in examples.words
    assert squares(examples, epsilon=3, delta=1e-2).accuracy is not None


def test_flowers_in_folders_as_the_source_had_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vgg.BLOCKS, 16, SMALL)
    for part in ("train", "valid"):
        write_images(tmp_path / "flowers" / part, {"1": 3, "2": 3})
    torch.save(vgg.VGG(classes=3, hidden=(2,), blocks=SMALL).state_dict(), tmp_path / "vgg16.pth")
    examples = read_examples(Settings(quick=True, data=tmp_path))
    assert (len(examples.train), examples.train.classes) == (6, ("1", "2"))


def test_data_that_no_experiment_needs_are_told(tmp_path: Path) -> None:
    assert unused_in(None) == unused_in(tmp_path) == ""
    (tmp_path / "cifar-10-batches-py").mkdir()
    assert unused_in(tmp_path).endswith("and not used: the source prints no numbers of it.")


def test_data_that_came_later_are_run_on(tmp_path: Path) -> None:
    seen: list[Settings] = []

    def run(settings: Settings) -> Result:
        seen.append(settings)
        return Result(name="quantiles", title="", lead="", verdicts=(), sections=())

    toy = Experiment(name="quantiles", title="", run=run)
    settings = Settings(data=tmp_path / "data")
    for _ in range(2):
        run_or_read(toy, settings, tmp_path / "out")
    assert len(seen) == 1
    salary_file(tmp_path / "data" / "salaries.csv", ["1"])
    for _ in range(2):
        run_or_read(toy, settings, tmp_path / "out")
    assert len(seen) == 2
