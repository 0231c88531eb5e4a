"""The application: requests with reports go to the reception, all others to a few routes that only read."""

import asyncio
import importlib.resources
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sourdine.collector.period import today
from sourdine.collector.reception import PATH, Reception, cors, is_inside, origin_allowed, respond
from sourdine.collector.results import StoreResults, metric
from sourdine.collector.retention import mix, prune
from sourdine.collector.settings import CollectorSettings
from sourdine.collector.shuffler.delivery import STATE_PATH, CollectorLink, DeliveryFailed, pass_on
from sourdine.collector.store import StoredQuestion
from sourdine.collector.writer import Writer
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOG = logging.getLogger("sourdine.collector")
_REFRESH = 2.0  # seconds after which a question that was closed elsewhere is known to be
_PRUNE = 3600.0
_PASS_ON = 1.0  # seconds between looks at what a shuffler has
_MOST_PAUSE = 30.0  # seconds until a shuffler tries again, after it has failed some times
_TIDY = 5.0  # seconds between tries to remove what a reader of an older state has kept in the files
_KINDS = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".ts": "text/plain",
    ".html": "text/html",
    ".css": "text/css",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"Idempotency-Key, Content-Type, Sourdine-Token, Sourdine-Least-Batch"),
    (b"access-control-max-age", b"7200"),
]
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
}


class CollectorApplication:
    """The ASGI application of one process."""

    def __init__(self, settings: CollectorSettings) -> None:
        self.settings = settings
        self.writer = Writer(
            settings.open_store, most_waiting=settings.most_waiting, staging=settings.staging
        )
        self.reception = Reception(settings, self.writer)
        self.results = StoreResults(settings)
        self.stopping = False
        self.link = CollectorLink(settings) if settings.shuffles else None
        self.is_tidy = False
        """Whether nothing that was removed is left in the raw files, as far as this process knows."""
        self._tidy_told = False
        self._pause, self._failure = _PASS_ON, ""
        self._pages: ASGIApp = Starlette(routes=_routes(self), lifespan=self._life)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        try:
            await self._answer(scope, receive, send)
        except Exception as problem:  # its words may quote a request, so its kind alone is logged
            LOG.error("A request failed: %s", type(problem).__name__)
            with suppress(Exception):
                await respond(send, HTTPStatus.INTERNAL_SERVER_ERROR, b'{"error":"failed"}', [])

    async def _answer(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["method"] == "POST":
            if scope["path"] == STATE_PATH and not self.settings.shuffles:
                await self.reception.take_state(scope, receive, send)
                return
            place = PATH.fullmatch(scope["path"])
            if place is not None:
                await self.reception.take(scope, receive, send, place.group(1))
                return
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        allowed = origin_allowed(self.settings, headers)
        if scope["method"] == "OPTIONS":
            status = HTTPStatus.NO_CONTENT if allowed else HTTPStatus.FORBIDDEN
            more = [*cors(origin), *_PREFLIGHT] if allowed and origin else []
            await respond(send, status, b"", more)
            return

        async def with_origin(message: "dict[str, object]") -> None:
            if message["type"] == "http.response.start" and origin and allowed:
                listed = message["headers"]
                assert isinstance(listed, list)
                message["headers"] = [*listed, *cors(origin)]
            await send(message)

        await self._pages(scope, receive, with_origin)  # type: ignore[arg-type]

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        with suppress(Exception):  # a store that is away comes back, and until then all are asked to wait
            await run_in_threadpool(self._refresh)
        self.writer.start()
        work = [
            asyncio.create_task(self._repeat(_REFRESH, self._refresh)),
            asyncio.create_task(self._repeat(_TIDY, self._tidy, at_once=True)),
        ]
        if self.settings.shuffles:
            work.append(asyncio.create_task(self._repeat(_PASS_ON, self._pass_on, at_once=True)))
        else:
            work.append(asyncio.create_task(self._repeat(_PRUNE, self._prune, at_once=True)))
        try:
            yield
        finally:
            self.stopping = True
            for each in work:
                each.cancel()
            await run_in_threadpool(self.writer.stop)
            await run_in_threadpool(self.results.close)

    async def _repeat(
        self, seconds: float, act: Callable[[], float | None], *, at_once: bool = False
    ) -> None:
        """Do something again and again, after some seconds or as many as it returns."""
        if not at_once:
            await asyncio.sleep(seconds)
        while True:
            pause = None
            try:
                pause = await run_in_threadpool(act)
            except Exception as problem:
                LOG.error("%s failed: %s", act.__name__.strip("_"), type(problem).__name__)
            await asyncio.sleep(seconds if pause is None else pause)

    def _refresh(self) -> None:
        """Ask the store which questions there are, and which are closed."""
        if self.reception.epoch is None:
            self.reception.epoch = self.results.identity().epoch
        self.reception.questions = {each.question.fingerprint: each for each in self.results.questions()}

    def _tidy(self) -> None:
        """Remove what is left of removed reports in the raw files, again and again until it is gone."""
        store = self.settings.open_store()
        try:
            self.is_tidy = store.tidy()
            if not self.is_tidy and not self._tidy_told:
                LOG.warning(
                    "Removed reports are still in the raw files. It is tried again until they are gone."
                )
            self._tidy_told = not self.is_tidy
        finally:
            store.close()

    def _pass_on(self) -> float:
        """Pass batches on, and return the seconds until the next time, which grow while the collector fails.

        A batch may have 64 MB, and a question that was closed at the collector refuses it for a week.
        """
        store = self.settings.open_store()
        try:
            pass_on(self.settings, store, today(), self.link)
            self._pause, self._failure = _PASS_ON, ""
        except DeliveryFailed as problem:
            self._pause = min(2 * self._pause, _MOST_PAUSE)
            if str(problem) != self._failure:
                LOG.warning("The collector did not take a batch (%s); it is sent again.", problem)
            self._failure = str(problem)
        finally:
            self.reception.is_synchronised = self.link is None or self.link.is_synchronised
            store.close()
        return self._pause

    def _prune(self) -> None:
        """Apply what was announced of time: removing first, which leaves less to mix."""
        store = self.settings.open_store()
        try:
            for each in store.questions():
                prune(store, each, today())
                mix(store, each, today())
        finally:
            store.close()

    def metrics(self) -> str:
        """What a collector tells whoever watches it."""
        return self.results.metrics(self.writer) + self._shared_metrics()

    def shuffler_metrics(self) -> str:
        """What a shuffler tells: batches and failures, and no number that moves with a single report."""
        assert self.link is not None
        batches, refused = self.results.batch_metrics()
        return (
            metric("sourdine_batches_waiting", "gauge", "Batches without a receipt.", {"": batches})
            + metric("sourdine_batches_delivered_total", "counter", "Receipts.", {"": self.link.delivered})
            + metric("sourdine_delivery_failures_total", "counter", "Tries without.", {"": self.link.failed})
            + metric(
                "sourdine_synchronised",
                "gauge",
                "Whether the collector has said what it has.",
                {"": int(self.link.is_synchronised)},
            )
            + metric("sourdine_refused_total", "counter", "Requests that were refused, by reason.", refused)
            + self._shared_metrics()
        )

    def _shared_metrics(self) -> str:
        return metric(
            "sourdine_forgetting_pending",
            "gauge",
            "Whether removed reports may still be in the raw files.",
            {"": int(not self.is_tidy)},
        ) + metric(
            "sourdine_store_failing",
            "gauge",
            "Whether the last write failed.",
            {"": int(self.writer.is_failing)},
        )

    def questions(self) -> Mapping[str, StoredQuestion]:
        """What is asked here, once the store has answered."""
        if self.reception.questions is None:
            raise NotYet
        return self.reception.questions

    def question(self, request: Request) -> StoredQuestion:
        """The question that a request names."""
        question = self.questions().get(request.path_params["fingerprint"])
        if question is None:
            raise NotHere
        return question

    def is_inside(self, request: Request) -> bool:
        """Whether a request came in where all results are shown, each report as it comes."""
        if self.settings.shuffles:
            return False  # what it has is not yet shuffled
        return self.settings.results_port == 0 or self.is_watching(request)

    def is_watching(self, request: Request) -> bool:
        """Return whether a request came in by the port for whoever watches the process."""
        return is_inside(request.scope, self.settings.results_port, self.settings.origins)


class NotHere(Exception):
    """What was asked for is not shown here."""


class NotYet(Exception):
    """The store has not answered since this process began."""


Handler = Callable[[CollectorApplication, Request], Awaitable[Response]]


def _routes(app: CollectorApplication) -> Sequence[Route]:
    def route(path: str, handler: Handler, *, results: bool = False, public: bool = True) -> Route:
        async def answer(request: Request) -> Response:
            try:
                shown = app.is_inside(request) or (public and app.settings.public_results)
                if results and not shown:
                    raise NotHere
                response = await handler(app, request)
            except NotHere:
                response = JSONResponse({"error": "unknown", "message": "There is nothing here."}, 404)
            except NotYet:
                told = {"error": "store", "message": "The store does not answer. Come again later."}
                response = JSONResponse(told, 503, {"Retry-After": "5"})
            except InvalidParameter as problem:
                response = JSONResponse({"error": "parameter", "message": str(problem)}, 400)
            for name, value in _SAFE.items():
                response.headers.setdefault(name, value)
            return response

        return Route(path, answer, methods=["GET"])

    one = "/v1/questions/{fingerprint}"
    return [
        route("/health", _health),
        route("/ready", _ready),
        route("/v1/questions", _list),
        route(one, _announcement),
        route(f"{one}/counts", _counts, results=True),
        route(f"{one}/estimates", _estimates, results=True),
        route("/metrics", _metrics, results=not app.settings.shuffles, public=False),
        route("/client/{name}", _client),
        route("/questions/{fingerprint}", _page, results=True),
        route("/", _pages, results=True),
    ]


async def _health(app: CollectorApplication, _: Request) -> Response:
    well = not app.stopping and not app.writer.is_failing and app.reception.questions is not None
    headers = {"Cache-Control": "no-store"}
    return JSONResponse({"status": "ok" if well else "failing"}, 200 if well else 503, headers)


async def _ready(app: CollectorApplication, _: Request) -> Response:
    """Whether reports are taken: the store answers, and a shuffler knows what its collector has."""
    lacking = [
        word
        for word, is_there in (
            ("store", app.reception.questions is not None and not app.writer.is_failing),
            ("collector", app.reception.is_synchronised),
            ("running", not app.stopping),
        )
        if not is_there
    ]
    content: dict[str, object] = {"ready": not lacking, "waits_for": lacking}
    return JSONResponse(content, 503 if lacking else 200, {"Cache-Control": "no-store"})


async def _list(app: CollectorApplication, _: Request) -> Response:
    day = today()
    listed = []
    for fingerprint, each in app.questions().items():
        told = each.signed.announcement
        listed.append(
            {
                "fingerprint": fingerprint,
                "name": each.question.name,
                "opens": told.opens.isoformat(),
                "closes": told.closes.isoformat(),
                "open": told.is_open(day) and not each.closed,
            }
        )
    return JSONResponse({"questions": listed}, headers={"Cache-Control": "no-cache"})


async def _announcement(app: CollectorApplication, request: Request) -> Response:
    question = app.question(request)
    tag = f'"{question.signed.announcement.version}-{question.question.fingerprint}"'
    headers = {"ETag": tag, "Cache-Control": "public, max-age=300"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(question.signed.to_text(), 200, headers, "application/json")


async def _counts(app: CollectorApplication, request: Request) -> Response:
    counts = await run_in_threadpool(
        app.results.counts,
        app.question(request),
        request.query_params.get("period"),
        grouped=not app.is_inside(request),
    )
    return JSONResponse(counts.to_json(), headers={"Cache-Control": "no-store"})


async def _estimates(app: CollectorApplication, request: Request) -> Response:
    confidence = app.results.confidence(request.query_params.get("confidence", "0.95"))
    content = await run_in_threadpool(
        app.results.estimates,
        app.question(request),
        confidence,
        request.query_params.get("period"),
        grouped=not app.is_inside(request),
    )
    return JSONResponse(content, headers={"Cache-Control": "no-store"})


async def _metrics(app: CollectorApplication, request: Request) -> Response:
    if app.settings.shuffles and not app.is_watching(request):
        raise NotHere
    make = app.shuffler_metrics if app.settings.shuffles else app.metrics
    text = await run_in_threadpool(make)
    return PlainTextResponse(
        text, headers={"Cache-Control": "no-store"}, media_type="text/plain; version=0.0.4"
    )


async def _client(_: CollectorApplication, request: Request) -> Response:
    name = request.path_params["name"]
    folder = importlib.resources.files("sourdine.collector") / "client"
    names = {each.name for each in folder.iterdir() if each.is_file()} if folder.is_dir() else set()
    kind = _KINDS.get(name[name.rfind(".") :])
    if name not in names or kind is None:
        raise NotHere
    content = (folder / name).read_bytes()
    return Response(content, headers={"Cache-Control": "public, max-age=3600"}, media_type=kind)


_PAGE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}
_RELOAD = 10  # seconds


async def _page(app: CollectorApplication, request: Request) -> Response:
    text = await run_in_threadpool(
        app.results.page,
        app.question(request),
        request.query_params.get("period"),
        grouped=not app.is_inside(request),
    )
    return HTMLResponse(text, headers={**_PAGE, "Refresh": str(_RELOAD)})


async def _pages(app: CollectorApplication, request: Request) -> Response:
    text = await run_in_threadpool(app.results.list_page, grouped=not app.is_inside(request))
    return HTMLResponse(text, headers=_PAGE)


@dataclass(frozen=True)
class ApplicationFactory:
    """Makes the application in whichever process it is to run."""

    settings: CollectorSettings

    def __call__(self) -> CollectorApplication:
        return CollectorApplication(self.settings)
