import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from sourdine.cli.shared.option_groups import with_groups


@dataclass(frozen=True, kw_only=True)
class Batches:
    size: Annotated[int, typer.Option("--batch-size", "-b", help="Of a batch.")] = 64
    sampler: Annotated[str, typer.Option("--sampler")] = "poisson"


@with_groups
def train(data: str, *, batches: Batches, epochs: Annotated[int, typer.Option("--epochs")] = 1) -> None:
    """Train."""
    print(data, batches.size, batches.sampler, epochs)


def run(*words: str) -> str:
    app = typer.Typer()
    app.command()(train)
    return CliRunner().invoke(app, words).stdout


def test_fields_are_options_where_the_group_stands() -> None:
    assert list(inspect.signature(train).parameters) == ["data", "size", "sampler", "epochs"]
    assert run("here", "-b", "8", "--epochs", "3") == "here 8 poisson 3\n"
    assert run("here") == "here 64 poisson 1\n"
    assert "Of a batch." in run("--help")


def test_a_name_in_two_groups_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Other:
        size: int = 1

    def both(*, one: Batches, other: Other) -> None: ...

    both.__annotations__["other"] = Other
    with pytest.raises(ValueError, match="duplicate parameter name: 'size'"):
        with_groups(both)
