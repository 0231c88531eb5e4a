"""The published vectors: Python, Node and Chromium make the same reports of the same secrets."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.collector.client import make_vectors, node

if TYPE_CHECKING:
    from playwright.sync_api import Page

VECTORS = json.loads(make_vectors.FILE.read_text(encoding="ascii"))
MADE = sum(len(case["reports"]) + len(case["draws"]) for case in VECTORS["cases"])


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def folder() -> Iterator[str]:
    """The client's files over HTTP, as a page gets them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(node.CLIENT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_python_makes_them() -> None:
    """Secrets of devices in the field hang on this file: it may get longer, and never change."""
    assert json.loads(json.dumps(make_vectors.vectors())) == VECTORS


def test_every_oracle_of_the_client_is_among_them() -> None:
    named = {case["question"]["oracle"]["mechanism"] for case in VECTORS["cases"]}
    source = (node.CLIENT / "sourdine.js").read_text(encoding="utf-8")
    assert named == {
        line.split('"')[1] for line in source.splitlines() if line.startswith('  "') and "/1" in line
    }


def of_node(vectors: object) -> Any:
    """What the runner says in Node."""
    script = "const {run} = await import(given[0]); console.log(JSON.stringify(await run(given[1])));"
    return node.run(script, [(node.CLIENT / "vectors.js").as_uri(), vectors])


def test_node_makes_them() -> None:
    assert of_node(VECTORS) == {"cases": len(VECTORS["cases"]), "made": MADE, "wrong": []}


def test_chromium_makes_them(page: "Page", folder: str) -> None:
    page.goto(f"{folder}/vectors.json")
    script = """async () => {
      const { run } = await import(new URL("vectors.js", location));
      return run(await (await fetch("vectors.json")).json());
    }"""
    assert page.evaluate(script) == {"cases": len(VECTORS["cases"]), "made": MADE, "wrong": []}


def test_a_changed_vector_is_told() -> None:
    first = VECTORS["cases"][1]
    other = {**first, "reports": [{**one, "row": "ff"} for one in first["reports"]]}
    assert len(of_node({"cases": [other]})["wrong"]) == len(first["reports"])
