"""`sourdine sql`: one question in SQL about a declared table, planned or paid and answered."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.plan import SpecFile, cost_of, plain_plan, print_answers, print_cost, print_plan
from sourdine.cli.release import plain, print_payment, print_quality, publish
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import parse


def sql(
    spec: SpecFile,
    question: Annotated[str, typer.Argument(help="One SELECT, in quotes; with EXPLAIN before it, its plan.")],
    *,
    epsilon: Annotated[
        str | None, typer.Option(help="What to pay at most. Without it, the epsilon of the specification.")
    ] = None,
    name: Annotated[str, typer.Option(help="What the question is called.")] = "sql",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder. Without it: NAME-release, here."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a declared table in SQL. The words become queries like others; none reaches an engine.

    The table, its columns, public tables beside it, the unit and the ledger are those of the specification,
    whose own queries are left out. EXPLAIN prints the plan and the errors, reads nothing and spends nothing.

    Examples: sourdine sql people.toml "EXPLAIN SELECT AVG(pay) FROM people" --epsilon .5 ·
    sourdine sql people.toml "SELECT sex, COUNT(*), AVG(pay) FROM people GROUP BY sex" --epsilon .5
    """
    from sourdine.tables import Specification
    from sourdine.tables.release import check_release
    from sourdine.tables.sql import read_sql

    specification = Specification.load(spec)
    reading = read_sql(question, specification.sql_table, name)
    text = question.lstrip()[len("explain") :] if reading.explain else question
    block = {"name": name, "sql": text}
    changes: dict[str, object] = {"queries": (block,)}
    if epsilon is not None:
        number = parse(epsilon)
        if number is None:
            raise InvalidParameter("The epsilon must be a number, such as 0.5 or 1/3.")
        privacy = specification.privacy.model_dump() | {"epsilon": number}
        changes["privacy"] = type(specification.privacy).model_validate(privacy)
    specification = specification.model_copy(update=changes)
    if reading.explain:
        plan = specification.plan()
        check_release(plan, specification.look())
        cost = cost_of(specification, plan)
        if as_json:
            show.document(plain_plan(plan, cost, None))
        else:
            print_plan(plan)
            print_cost(cost)
        if cost.refusal is not None:
            raise cost.refusal
        return
    folder = Path(f"{name}-release") if output is None else output
    published = publish(specification, folder)
    if as_json:
        show.document(plain(published))
        return
    print_answers(published.release.values, f"The rest is in {folder}.")
    print_quality(published.release)
    print_payment(published)
