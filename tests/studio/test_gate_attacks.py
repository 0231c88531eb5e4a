"""What others can do to Studio, tried in a browser that knows more than they would: the port and the path."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from benchmarks.studio.path import write_people
from benchmarks.studio.running import RunningStudio, running, settled
from sourdine.studio.gate import COOKIE

if TYPE_CHECKING:
    from playwright.sync_api import Page

SECRET = "nobody may read this 8675309"
MARKUP = '"\'><img src=x onerror="window.hit=1"><script>window.hit=1</script>{{7*7}}'


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[RunningStudio]:
    folder = tmp_path / "work"
    folder.mkdir()
    write_people(folder, rows=20)
    (tmp_path / "secret.csv").write_text(f"{SECRET}\n1\n", encoding="utf-8")
    with running(folder) as started:
        yield started


@contextmanager
def other_site(page: str) -> Iterator[int]:
    """A server with one page, on a port of its own."""

    class Answer(BaseHTTPRequestHandler):
        content: ClassVar[bytes] = page.encode()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(self.content)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def attack_page(base: str) -> str:
    """Everything that a page can send or show of another one."""
    return f"""<!doctype html><html lang="en"><title>Other</title>
<form id="form" method="post" enctype="text/plain" action="{base}/start" target="frame">
<input name='{{"table":"people.csv","x":"' value='"}}'></form>
<iframe name="frame" src="{base}/"></iframe><img src="{base}/static/studio.css">
<script src="{base}/static/studio.js"></script>
<script>
window.found = [];
const body = '{{"table":"people.csv"}}', post = {{ method: "POST", credentials: "include", body }};
const tries = [
  ["{base}/start", {{ ...post, mode: "no-cors" }}],
  ["{base}/start", {{ ...post, headers: {{ "Content-Type": "application/json" }} }}],
  ["{base}/", {{ credentials: "include" }}],
];
Promise.all(tries.map(async ([where, how]) => {{
  try {{ found.push(await (await fetch(where, how)).text()); }} catch (error) {{ found.push("refused"); }}
}})).then(() => {{ document.getElementById("form").submit(); window.done = true; }});
</script></html>"""


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1"])
def test_another_sites_page_changes_and_reads_nothing(
    studio: RunningStudio, page: "Page", tmp_path: Path, host: str
) -> None:
    studio.enter(page)  # the cookie is in this browser
    with other_site(attack_page(studio.base)) as port:
        tab = page.context.new_page()
        answers: list[int] = []
        tab.on("response", lambda each: answers.append(each.status) if studio.base in each.url else None)
        tab.goto(f"http://{host}:{port}/")
        tab.wait_for_function("window.done === true")
        for _ in range(100):  # the form comes last, into the frame
            if len(answers) < 6:
                tab.wait_for_timeout(20)
        assert [each for each in tab.evaluate("window.found") if each not in ("", "refused")] == []
        assert set(answers) == {403}
    assert sorted(each.name for each in (tmp_path / "work").iterdir()) == ["people.csv"]
    page.reload()
    assert page.get_by_role("button", name="Begin").count() == 1  # whoever started it goes on


def test_another_name_for_this_machine_is_refused(studio: RunningStudio, page: "Page") -> None:
    rebound = studio.first.replace("127.0.0.1", "rebound.example")
    answer = page.goto(rebound)
    assert answer is not None
    assert answer.status == 403
    assert studio.studio.keys.token is not None  # which was not used up by it
    studio.enter(page)
    assert page.goto(f"{studio.base}/".replace("127.0.0.1", "rebound.example")).status == 403  # type: ignore[union-attr]


def test_another_user_of_the_machine_is_refused(studio: RunningStudio, page: "Page") -> None:
    first = studio.first
    studio.enter(page)
    (cookie,) = page.context.cookies(studio.base)
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert cookie["path"] == studio.studio.keys.prefix
    for where, cookies in [(first, ""), (f"{studio.base}/", ""), (f"{studio.base}/", f"{COOKIE}=guess")]:
        connection = http.client.HTTPConnection("127.0.0.1", studio.port)
        connection.request("GET", where.partition(str(studio.port))[2], headers={"Cookie": cookies})
        answer = connection.getresponse()
        assert answer.status == 403
        assert b"people.csv" not in answer.read()
        connection.close()
    connection = http.client.HTTPConnection("127.0.0.1", studio.port)
    connection.request("GET", "/")
    assert connection.getresponse().status == 404
    connection.close()


@pytest.mark.parametrize(
    "path",
    [
        "/spec/../../secret.csv",
        "/spec/..%2f..%2fsecret.csv",
        "/spec/%2e%2e/secret.csv",
        "/spec/..%5csecret.csv",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/gate.py",
        "/file/..%2fsecret.csv",
        "/file/people.csv",
        "/file/link.csv",
        "/spec/people.csv",
        "/ledger/..%2fsecret.csv",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_folder_or_to_a_value(
    studio: RunningStudio, tmp_path: Path, path: str
) -> None:
    (tmp_path / "work" / "link.csv").symlink_to(tmp_path / "secret.csv")
    connection = http.client.HTTPConnection("127.0.0.1", studio.port)
    keys = studio.studio.keys
    connection.request("GET", keys.prefix + path, headers={"Cookie": f"{COOKIE}={keys.session}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status in (403, 404, 405)
    assert SECRET not in text
    assert "north" not in text
    assert "root:" not in text
    assert "import" not in text


@pytest.mark.slow
def test_script_in_names_of_files_and_columns_stays_text(
    studio: RunningStudio, page: "Page", tmp_path: Path
) -> None:
    name = '<img src=x onerror="window.hit=1">.csv'
    header = '"<img src=x onerror=window.hit=1>",age,"\'""><script>window.hit=1</script>"'
    (tmp_path / "work" / name).write_text(f"{header}\n1,2,3\n", encoding="utf-8")
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    studio.enter(page)
    page.get_by_label(name).check()
    page.get_by_role("button", name="Begin").click()
    page.locator("#people-title").wait_for()
    for step in ("table", "people", "columns", "questions", "budget", "check", "release", "result"):
        page.evaluate("step => { location.hash = step }", step)
        page.locator(f"#{step}-title").wait_for()
        fields = page.locator(f"#{step} :is(input:not([type]), input[type=text], textarea)")
        for place in range(fields.count()):
            if fields.nth(place).is_visible():
                fields.nth(place).fill(MARKUP)
                fields.nth(place).blur()
                settled(page)
        assert page.evaluate("window.hit") is None
        assert page.locator(f"#{step} img, #{step} script").count() == 0
    page.reload()
    page.goto(f"{studio.base}/")
    assert page.evaluate("window.hit") is None
    assert page.locator("main img").count() == 0
    assert [each for each in said if "Content Security Policy" in each] == []
