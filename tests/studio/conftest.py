"""A folder with a table, and a browser's place in Studio: the cookie and the right address."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from sourdine.cli.release import publish
from sourdine.cli.synthetic.synthesize import publish as write_table
from sourdine.studio.app import Studio, create_app
from sourdine.studio.desk import Desk
from sourdine.studio.folder import Folder

HOST = "127.0.0.1:8000"
HEADER = "id,age,sex,region,pay,visits,smoker,joined"
SECRET = "7412589630"  # a value that no page may show


class Browser:
    """Asks a studio as its page would."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.client = TestClient(
            create_app(studio, (HOST,)), base_url=f"http://{HOST}", follow_redirects=False
        )
        self.base = studio.keys.prefix

    def enter(self) -> "Browser":
        """Come in by the first address."""
        answer = self.client.get(f"{self.base}/", params={"token": self.studio.keys.token or ""})
        assert answer.status_code == 200
        return self

    def get(self, where: str = "/", **headers: str) -> Any:
        """A page."""
        return self.client.get(f"{self.base}{where}", headers=headers)

    def post(self, where: str, asked: Any, **headers: str) -> Any:
        """An act, from the page itself."""
        return self.client.post(
            f"{self.base}{where}", json=asked, headers={"Origin": f"http://{HOST}", **headers}
        )

    def act(self, name: str, act: str, /, **asked: Any) -> dict[str, Any]:
        """Change a specification as it is now."""
        version = self.studio.desk.sheet(name).file.version
        answer = self.post(f"/spec/{name}/act", {"version": version, "act": act, **asked})
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content

    def set(self, name: str, at: str, value: Any) -> dict[str, Any]:
        """Type something into a field."""
        return self.act(name, "set", at=at, value=value)


def studio_of(folder: Path, *, ledger: str | None = None) -> Studio:
    reached = Folder.of(folder, ledger=ledger)
    return Studio(
        Desk(
            reached,
            lambda spec, place, watch: publish(spec, place, watch=watch),
            lambda spec, place, watch: write_table(spec, place, "synthetic.csv"),
        )
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{k},{20 + k % 60},{'fm'[k % 2]},north,{1000 + k},3,true,2020-01-01" for k in range(50)]
    (tmp_path / "people.csv").write_text("\n".join([HEADER, *rows, f"{SECRET},1,f,x,1,1,true,x"]) + "\n")
    return tmp_path


@pytest.fixture
def browser(folder: Path) -> Browser:
    return Browser(studio_of(folder)).enter()


@pytest.fixture
def people(browser: Browser) -> str:
    """The name of a specification that was begun with the table."""
    answer = browser.post("/start", {"table": "people.csv"})
    assert answer.status_code == 200, answer.text
    return "people.toml"
