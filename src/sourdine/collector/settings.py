"""How a collector is run: where it stores, whom it lets in, and how much it takes."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sourdine.collector.postgres import PostgresStore
from sourdine.collector.sqlite import SqliteStore
from sourdine.collector.store import ReportStore
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

MOST_BODY = 1 << 20


@dataclass(frozen=True, kw_only=True)
class CollectorSettings:
    """The settings of a collector; times are in seconds.

    `rate` is how many requests a second one address may send (0: any number), counted in memory alone.
    """

    store: str
    origins: tuple[str, ...] = ()
    most_body: int = MOST_BODY
    most_waiting: int = 4096
    rate: float = 100.0
    body_time: float = 10.0
    header_time: float = 10.0
    stop_time: float = 20.0
    collector: str = ""
    """Of a shuffler, where it passes batches on to; a collector has none."""
    shuffler_key: str = field(default="", repr=False)
    """The secret that a shuffler and its collector share, in hexadecimal digits."""
    plain_http: bool = False
    """Whether a shuffler may send batches over plain http beyond this machine."""
    staging: float = 0.0
    """Seconds that reports may be in memory alone, until enough are together; 0: each is stored at once."""
    most_connections: int = 512
    """How many connections one address may have, and half of what a network may have; 0: any number."""
    results_port: int = 0
    """The port on which counts, estimates and pages are shown; 0: on every port."""
    public_results: bool = False
    """Whether they are shown on the other ports too, to everybody: reports then in groups."""

    def __post_init__(self) -> None:
        owner = "CollectorSettings"
        check.keep(
            self,
            origins=tuple(_origin(each) for each in self.origins),
            most_body=check.integer(owner, "most_body", self.most_body, 1, 1 << 30),
            most_waiting=check.integer(owner, "most_waiting", self.most_waiting, 1, 1 << 24),
            most_connections=check.integer(owner, "most_connections", self.most_connections, 0, 1 << 20),
            results_port=check.integer(owner, "results_port", self.results_port, 0, 65535),
        )
        for name in ("rate", "staging", "body_time", "header_time", "stop_time"):
            low = 0 if name in ("rate", "staging") else 1e-3
            if not low <= getattr(self, name) <= 1e9:
                raise check.fail(owner, name, f"lie between {low} and 10^9", getattr(self, name))

    @property
    def shuffles(self) -> bool:
        """Whether this is a shuffler."""
        return self.collector != ""

    def open_store(self) -> ReportStore:
        """The store, opened anew."""
        return open_store(self.store)


def open_store(place: str) -> ReportStore:
    """A store in a file, or on a server if its address is that of one."""
    if place.lower().startswith(("postgres:", "postgresql:")):
        return PostgresStore(place)
    return SqliteStore(Path(place))


def _origin(text: str) -> str:
    """An origin as browsers send it."""
    parts = urlsplit(text)
    plain = f"{parts.scheme}://{parts.netloc}"
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or text.rstrip("/") != plain
        or "@" in text
    ):
        raise InvalidParameter(
            "An origin is a scheme, a host and perhaps a port, such as https://survey.example. "
            "Name each whose pages may send reports; there is no sign for all of them."
        )
    return plain.lower()
