"""`sourdine local questionnaire`: several questions to one person, within one budget."""

import json
from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, shorten_up
from sourdine.core.text import read_toml

_FIELDS = {"name", "epsilon", "items", "joint", "changes", "way"}


def questionnaire(
    plan: Annotated[
        Path, typer.Argument(help="What is asked (TOML): name, epsilon, [items], joint, changes.")
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A folder for the specifications, not there yet.")
    ],
    as_json: AsJson = False,
) -> None:
    """Share one budget among several questions, and write the specification of each.

    Each device answers one of them, which its secret picks, or all with a part of the budget: whichever is
    forecast to have the smaller variance. Pairs under 'joint' are asked together. 'changes' is how many
    different answers to a question a device reports on; beyond them it repeats its last report.

    Example: sourdine local questionnaire office.toml -o office
    """
    from sourdine.local.questionnaire import Item, Questionnaire, Way

    content = read_toml(plan)
    items = content.get("items")
    if not {"name", "epsilon", "items"} <= content.keys() <= _FIELDS or not isinstance(items, dict):
        raise InvalidParameter(
            f"{plan} must have a name, an epsilon and [items], each a list of labels, and may have joint, "
            "changes and way. Mend it."
        )
    survey = Questionnaire(
        name=content["name"],
        epsilon=content["epsilon"],
        items=tuple(Item(name, tuple(labels)) for name, labels in items.items()),
        joint=tuple((pair[0], pair[-1]) for pair in content.get("joint", ())),
        changes=content.get("changes", 1),
        given_way=Way(content["way"]) if content.get("way") in set(Way) else None,
    )
    files = {"questionnaire.json": survey.to_json()} | {
        f"question_{place}.json": question.to_json() for place, question in enumerate(survey.questions, 1)
    }
    try:
        output.mkdir(parents=True)
    except FileExistsError:
        raise InvalidParameter(
            f"{output} exists already, and reports may name what is in it. Choose another folder with -o."
        ) from None
    for name, description in files.items():
        disk.write_whole(
            output / name, json.dumps(description, indent=2, ensure_ascii=False) + "\n", over=False
        )
    forecasts = {str(way): survey.forecast(way) for way in Way}
    if as_json:
        show.document(
            {
                "folder": str(output),
                "way": str(survey.way),
                "forecast_variance_times_devices": forecasts,
                "report_epsilon": float(survey.report_epsilon(survey.way)),
                "questions": {question.fingerprint: question.name for question in survey.questions},
            }
        )
        return
    for question in survey.questions:
        show.line(f"{question.fingerprint}  {question.name}")
    each = shorten_up(float(survey.report_epsilon(survey.way)), 6)
    ways = {
        Way.SAMPLE: f"Each device answers one of {counted(len(survey.questions), 'question')}, by its secret",
        Way.SPLIT: f"Each device answers all of {counted(len(survey.questions), 'question')}",
    }
    beside = " (that one changed is seen beside that)" if survey.changes > 1 else ""
    show.say(
        f"{ways[survey.way]}: a report costs epsilon {each}, all of a device together at most "
        f"{shorten_up(float(survey.epsilon), 6)}, with {counted(survey.changes, 'different answer')} to a "
        f"question{beside}. The variance of a share, times the number of devices, is forecast to be "
        f"{forecasts['sample']:.3g} with one question each and {forecasts['split']:.3g} with all."
    )
