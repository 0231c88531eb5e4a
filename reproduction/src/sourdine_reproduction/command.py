"""`sourdine reproduce`: do again what the source documents published, and say how it stands."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.app import VerbOrName
from sourdine.cli.shared.parse import AsJson
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine_reproduction.mutants import mutants

if TYPE_CHECKING:
    from sourdine_reproduction import Experiment, Result

reproduce = typer.Typer(cls=VerbOrName)
reproduce.command(name="mutants")(mutants)


@reproduce.callback(invoke_without_command=True)
def run(
    ctx: typer.Context,
    *,
    name: Annotated[
        str | None, typer.Argument(help="An experiment, or all. Without it: what there is.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions, no slow figures.")] = False,
    data: Annotated[Path | None, typer.Option("--data", help="The folder with downloaded data.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for pages and tables.")] = Path(
        "reproduced"
    ),
    again: Annotated[
        bool, typer.Option("--again", help="Repeat what an earlier run left in the folder.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Repeat a published experiment: verdicts here; a page, CSV tables and PNG figures in a folder.

    The folder of --data holds what was downloaded, as it is unpacked: mnist, 102flowers with vgg16*.pth
    beside it, pima or diabetes.csv, salaries.csv. Each experiment says whether it ran on real data.

    With all, there is a page for each source as well, with every statement in its words, and all.html leads
    to them. Results are kept as they are found: a run that was broken off goes on where it was.

    `sourdine reproduce mutants` audits what was broken on purpose.

    Examples: sourdine reproduce budget · sourdine reproduce all --quick -o reproduced ·
    sourdine reproduce mutants
    """
    if ctx.invoked_subcommand is not None:
        return
    from sourdine_reproduction import Settings, find_experiments
    from sourdine_reproduction.cache import forget, run_or_read
    from sourdine_reproduction.data import data_sentence, unused_in
    from sourdine_reproduction.pages import write_pages

    known = find_experiments()
    if name is None:
        _list(known, as_json)
        return
    if name != "all" and name not in known:
        raise check.fail("reproduce", "name", f"be all or one of {', '.join(known)}", name)
    if data is not None and not data.is_dir():
        raise InvalidParameter(f"{data} is not a folder. Name the folder with the data.")
    show.check_folder(output)
    settings = Settings(quick=quick, data=data, watch=show.progress)
    chosen = list(known.values()) if name == "all" else [known[name]]
    documents, results = [], []
    for place, each in enumerate(chosen, 1):
        if len(chosen) > 1:
            show.line(f"{place} of {len(chosen)}: {each.title}", aside=True)
        if again:
            forget(each, output)
        result, earlier = run_or_read(each, settings, output)
        sentence = data_sentence(each.name, data)
        result = replace(result, lead=f"{result.lead} {sentence}".strip())
        files = result.write(output)
        results.append(result)
        if as_json:
            documents.append(_plain(result, files) | {"data": _origins(each.name, data)})
        else:
            _print(result, files, earlier)
            show.line(sentence)
            show.line()
    if (unused := unused_in(data)) and not as_json:
        show.line(unused)
    page = None
    if name == "all":
        page = write_pages(results, output, quick=quick)
    if as_json:
        show.document({"experiments": documents} | ({} if page is None else {"page": str(page)}))
    elif page is not None:
        show.line(f"Start with {page}: it leads to a page for each source and for each experiment.")


def _list(known: "dict[str, Experiment]", as_json: bool) -> None:
    if as_json:
        show.document({"experiments": [{"name": each.name, "title": each.title} for each in known.values()]})
    else:
        show.table(("name", "what it does again"), [(each.name, each.title) for each in known.values()])
        show.line("Next: sourdine reproduce NAME, with --quick to try it; or 'sourdine reproduce all'")


def _print(result: "Result", files: tuple[Path, ...], earlier: bool) -> None:
    show.line(result.title + (" (from an earlier run; --again repeats it)" if earlier else ""))
    rows = [
        (
            each.statement.claim,
            each.statement.published,
            each.finding,
            f"{each.word}. {each.why}" if each.why else each.word,
        )
        for each in result.verdicts
    ]
    if rows:
        show.table(("claim", "published", "ours", "verdict"), rows)
    else:
        show.say(result.lead)
    tables = sum(path.suffix == ".csv" for path in files)
    show.line(
        f"The page is {files[0]}, with {counted(tables, 'table')} as CSV and its figures as PNG beside it."
    )


def _plain(result: "Result", files: tuple[Path, ...]) -> dict[str, object]:
    return {
        "name": result.name,
        "title": result.title,
        "verdicts": [
            {
                "name": each.statement.name,
                "claim": each.statement.claim,
                "source": each.statement.source.document,
                "place": each.statement.place,
                "sentence": each.statement.sentence,
                "published": each.statement.published,
                "found": each.finding,
                "standing": None if each.standing is None else str(each.standing),
                "why": each.why or None,
            }
            for each in result.verdicts
        ],
        "files": [str(path) for path in files],
    }


def _origins(name: str, data: Path | None) -> list[dict[str, object]]:
    from sourdine_reproduction.data import origins_of

    return [
        {"name": each.name, "real": each.place is not None, "place": str(each.place) if each.place else None}
        for each in origins_of(name, data)
    ]
