"""Studio as people have it: a real server on a free port, for a real browser, in tests and benchmarks."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import uvicorn

from sourdine.cli.release import publish
from sourdine.cli.synthetic.synthesize import publish as write_table
from sourdine.studio.app import Studio, create_app
from sourdine.studio.desk import Desk
from sourdine.studio.folder import Folder
from sourdine.studio.gate import hosts_of
from sourdine.studio.server import HOST, _listening

if TYPE_CHECKING:
    from playwright.sync_api import Page


COUNTED = """
(() => {
  const plain = window.fetch;
  window.asked = 0;
  window.fetch = (...all) => {
    window.asked += 1;
    const shown = () => setTimeout(() => { window.asked -= 1; }, 30);
    return plain(...all).then(
      (response) => { response.clone().text().finally(shown); return response; },  // not before it is whole
      (problem) => { shown(); throw problem; },
    );
  };
})();
"""


def settled(page: "Page") -> None:
    """Wait until a page asks nothing of the server any more, and has shown what it was told."""
    while page.evaluate("window.asked"):
        page.wait_for_timeout(10)


@dataclass(frozen=True)
class RunningStudio:
    """A studio that answers, and where."""

    studio: Studio
    port: int

    @property
    def base(self) -> str:
        """Where its pages are."""
        return f"http://{HOST}:{self.port}{self.studio.keys.prefix}"

    @property
    def first(self) -> str:
        """The address that works once."""
        return f"{self.base}/?token={self.studio.keys.token}"

    def enter(self, page: "Page") -> None:
        """Open the first address, as whoever started it does."""
        page.context.add_init_script(COUNTED)
        page.goto(self.first)
        page.wait_for_url(f"{self.base}/")


@contextmanager
def running(folder: Path) -> Iterator[RunningStudio]:
    """A server of a folder, in a thread of this process."""
    studio = Studio(
        Desk(
            Folder.of(folder),
            lambda spec, place, watch: publish(spec, place, watch=watch),
            lambda spec, place, watch: write_table(spec, place, "synthetic.csv"),
        )
    )
    with _listening(0) as listener:
        port = listener.getsockname()[1]
        app = create_app(studio, hosts_of(port))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        end = monotonic() + 30
        while not server.started and monotonic() < end:
            sleep(0.01)
        yield RunningStudio(studio, port)
        server.should_exit = True
        thread.join(timeout=10)
