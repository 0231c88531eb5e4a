"""The pages and acts of Studio, as an application for any server."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.files import CERTIFICATE
from sourdine.report.view import Page
from sourdine.studio.acts import act_on
from sourdine.studio.desk import Desk
from sourdine.studio.draft import ChangedElsewhere
from sourdine.studio.folder import Folder
from sourdine.studio.gate import ALONE, Secrets, StudioGate
from sourdine.studio.page import (
    render_code,
    render_dry_run,
    render_error,
    render_forecast,
    render_noise,
    render_sheet,
    render_start,
    render_steps,
)
from sourdine.studio.publish import REPORT, read_certificate
from sourdine.studio.reports import (
    answer_with,
    epsilon_report,
    ledger_report,
    meaning_report,
    training_report,
    verdict_report,
)
from sourdine.studio.review import read_number

_HERE = Path(__file__).parent
CODE = "code-"  # how parts of the page are called that show a step as code
Handler = Callable[[Request], Response]


@dataclass
class Studio:
    """What all requests share."""

    desk: Desk
    keys: Secrets = field(default_factory=Secrets)


def create_app(studio: Studio, hosts: tuple[str, ...]) -> ASGIApp:
    """The application of a folder, which answers to these hosts and to the holder of the keys alone."""
    routes = [
        Route("/", _page(_start)),
        Route("/start", _answer(_begin), methods=["POST"]),
        Route("/spec/{name:path}/act", _answer(_act), methods=["POST"]),
        Route("/spec/{name:path}/fill", _answer(_fill), methods=["POST"]),
        Route("/spec/{name:path}/forecast", _answer(_forecast), methods=["POST"]),
        Route("/spec/{name:path}/steps", _page(_steps)),
        Route("/spec/{name:path}", _page(_sheet)),
        Route("/ledger/{name:path}", _page(_report(ledger_report))),
        Route("/meaning/{name:path}", _page(_report(meaning_report))),
        Route("/verdict/{name:path}", _page(_report(verdict_report))),
        Route("/epsilon", _page(_epsilon)),
        Route("/training", _page(_training)),
        Route("/file/{name:path}", _page(_file)),
        Mount("/static", StaticFiles(directory=_HERE / "static")),
    ]
    inner = Starlette(routes=[Mount(studio.keys.prefix, routes=routes)])
    inner.state.studio = studio
    return StudioGate(inner, studio.keys, hosts)


def _start(request: Request) -> Response:
    return HTMLResponse(render_start(_studio(request).desk, _studio(request).keys.prefix))


def _sheet(request: Request) -> Response:
    studio = _studio(request)
    sheet = studio.desk.sheet(request.path_params["name"])
    return HTMLResponse(render_sheet(studio.desk, sheet, studio.keys.prefix))


def _report(made_of: Callable[[Folder, str, str], Page]) -> Handler:
    """A page about something that lies in the folder."""

    def answer(request: Request) -> Response:
        studio = _studio(request)
        return answer_with(made_of(studio.desk.folder, request.path_params["name"], studio.keys.prefix))

    return answer


def _epsilon(request: Request) -> Response:
    given = request.query_params
    page = epsilon_report(given.get("epsilon", "1"), given.get("delta", "0"), _studio(request).keys.prefix)
    return answer_with(page)


def _training(request: Request) -> Response:
    return answer_with(training_report(_studio(request).keys.prefix))


def _begin(request: Request, asked: dict[str, Any]) -> dict[str, Any]:
    """Begin with a table: the answer says where to go on."""
    studio = _studio(request)
    names = str(asked.get("names") or "").strip() or None
    name = studio.desk.start(str(asked.get("table", "")), names=names, sure=bool(asked.get("sure")))
    return {"go": f"{studio.keys.prefix}/spec/{quote(name)}#people"}


def _act(request: Request, asked: dict[str, Any]) -> dict[str, Any]:
    """Change a specification: the answer holds all steps as they are now."""
    studio = _studio(request)
    name = request.path_params["name"]
    said = ""
    try:
        sheet = act_on(studio.desk, name, asked)
    except ChangedElsewhere as problem:
        sheet, said = studio.desk.sheet(name), str(problem)
    return {
        "version": sheet.file.version,
        "html": render_steps(studio.desk, sheet, studio.keys.prefix),
        "said": said,
    }


def _steps(request: Request) -> Response:
    """All steps as they are now, for a page that waits for something."""
    studio = _studio(request)
    sheet = studio.desk.sheet(request.path_params["name"])
    html = render_steps(studio.desk, sheet, studio.keys.prefix)
    return JSONResponse({"version": sheet.file.version, "html": html})


def _fill(request: Request, asked: dict[str, Any]) -> dict[str, Any]:
    """A part of the page that is made when it is asked for."""
    sheet = _studio(request).desk.sheet(request.path_params["name"])
    if asked.get("what") == "dry-run":
        return {"html": render_dry_run(sheet)}
    if str(asked.get("what", "")).startswith(CODE):
        return {"html": render_code(sheet, str(asked["what"]).removeprefix(CODE))}
    return {"html": render_noise(sheet, _number(asked, "position"), _place(asked, "place"))}


def _forecast(request: Request, asked: dict[str, Any]) -> dict[str, Any]:
    """The errors at a place of the slider, and the noise if it is drawn."""
    sheet = _studio(request).desk.sheet(request.path_params["name"])
    position = _number(asked, "position")
    html, epsilon = render_forecast(sheet, position)
    noise = {"noise": render_noise(sheet, position, _place(asked, "noise"))} if "noise" in asked else {}
    return {"html": html, "epsilon": epsilon, **noise}


def _place(asked: dict[str, Any], name: str) -> int:
    return int(_number(asked, name)) if name in asked else -1


def _number(asked: dict[str, Any], name: str) -> float:
    given = read_number(str(asked.get(name) or 0))
    return 0 if isinstance(given, str) else given


def _file(request: Request) -> Response:
    """A file of a release, one that its certificate covers or the certificate itself."""
    folder, _, name = request.path_params["name"].rpartition("/")
    place = _studio(request).desk.folder.inside(folder)
    if name != CERTIFICATE and name not in read_certificate(place).digests:
        raise InvalidParameter(f"The certificate of {folder} covers no file {name}.")
    file = _studio(request).desk.folder.inside(f"{folder}/{name}")
    if not file.is_file():
        raise InvalidParameter(f"There is no file {name} in {folder}.")
    if name == REPORT:
        return HTMLResponse(file.read_bytes(), headers=ALONE)
    return FileResponse(file, filename=name, media_type="application/octet-stream")


def _studio(request: Request) -> Studio:
    studio = request.app.state.studio
    assert isinstance(studio, Studio)
    return studio


def _page(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A page; what is refused is a page that says so."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            return await run_in_threadpool(handler, request)
        except SourdineError as problem:
            prefix = _studio(request).keys.prefix
            return HTMLResponse(render_error(str(problem), prefix), 404)

    return answer


def _answer(
    handler: Callable[[Request, dict[str, Any]], dict[str, Any]],
) -> Callable[[Request], Awaitable[Response]]:
    """An answer in JSON to a question in JSON; what is refused is said in a sentence."""

    @wraps(handler)
    async def answer(request: Request) -> Response:
        if request.headers.get("content-type", "").split(";")[0] != "application/json":
            return JSONResponse({"said": "Only the page of this server can ask here."}, 415)
        try:
            asked = json.loads(await request.body())
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            return JSONResponse({"said": "The request could not be read. Reload the page."}, 400)
        try:
            return JSONResponse(await run_in_threadpool(handler, request, asked))
        except InvalidParameter as problem:
            return JSONResponse({"said": str(problem)}, 422)
        except SourdineError as problem:
            return JSONResponse({"said": str(problem)}, 409)

    return answer
