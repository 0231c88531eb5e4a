"""Who is let in, and who is not."""

from pathlib import Path

import pytest

from sourdine.studio.gate import COOKIE, MOST_BYTES, hosts_of
from tests.studio.conftest import HOST, Browser, studio_of


def test_the_first_address_works_once(folder: Path) -> None:
    browser = Browser(studio_of(folder))
    token = browser.studio.keys.token or ""
    assert browser.get().status_code == 403
    answer = browser.client.get(f"{browser.base}/", params={"token": token})
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", f"path={browser.base}".lower()))
    assert browser.get().status_code == 200
    other = Browser(browser.studio)
    assert other.client.get(f"{browser.base}/", params={"token": token}).status_code == 403
    assert other.get().status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_a_wrong_token_is_refused_and_the_right_one_still_works(folder: Path, token: str) -> None:
    browser = Browser(studio_of(folder))
    assert browser.client.get(f"{browser.base}/", params={"token": token}).status_code == 403
    browser.enter()


def test_the_first_address_leads_to_pages_of_studio_alone(folder: Path) -> None:
    for page, target in (("spec/a b.toml", "./spec/a%20b.toml"), ("https://x.example", "./"), ("//x", "./")):
        browser = Browser(studio_of(folder))
        token = browser.studio.keys.token or ""
        answer = browser.client.get(f"{browser.base}/", params={"token": token, "page": page})
        assert f'href="{target}"' in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", ""])
def test_another_host_is_refused(browser: Browser, host: str) -> None:
    assert browser.get(Host=host).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8000", ""])
def test_another_origin_changes_nothing(browser: Browser, people: str, origin: str) -> None:
    version = browser.studio.desk.sheet(people).file.version
    asked = {"version": version, "act": "set", "at": "/privacy/unit", "value": "x"}
    assert browser.post(f"/spec/{people}/act", asked, Origin=origin).status_code == 403
    assert browser.studio.desk.sheet(people).file.version == version


def test_another_site_reads_nothing(browser: Browser) -> None:
    assert browser.get(**{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert browser.get(**{"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert browser.get(**{"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_form_is_refused(browser: Browser, people: str) -> None:
    answer = browser.client.post(
        f"{browser.base}/spec/{people}/act", data={"act": "set"}, headers={"Origin": f"http://{HOST}"}
    )
    assert answer.status_code == 415


def test_a_wrong_cookie_is_refused(folder: Path) -> None:
    browser = Browser(studio_of(folder))
    browser.client.cookies.set(COOKIE, "wrong")
    assert browser.get().status_code == 403


def test_a_cookie_that_another_port_has_set_locks_nobody_out(browser: Browser) -> None:
    # cookies know no ports: another server of this machine may set one of this name, for all paths
    right = f"{COOKIE}={browser.studio.keys.session}"
    browser.client.cookies.clear()
    for cookies in (f"{right}; {COOKIE}=other", f"{COOKIE}=other; {right}", f"a=b; {right}"):
        assert browser.get(Cookie=cookies).status_code == 200
    for cookies in (f"{COOKIE}=other", f"x{right}", COOKIE, f"{COOKIE}=", ""):
        assert browser.get(Cookie=cookies).status_code == 403


def test_the_usual_port_is_left_out_by_browsers() -> None:
    assert hosts_of(80) == ("127.0.0.1", "localhost")
    assert hosts_of(81) == ("127.0.0.1:81", "localhost:81")


def test_a_large_request_is_refused(browser: Browser, people: str) -> None:
    assert browser.post(f"/spec/{people}/act", {"value": "x" * MOST_BYTES}).status_code == 413


def test_every_answer_keeps_the_browser_to_it(browser: Browser, people: str) -> None:
    for where in ("/", f"/spec/{people}", "/static/studio.js", "/nowhere", "/spec/none.toml"):
        headers = browser.get(where).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "where",
    [
        "/spec/../people.csv",
        "/spec/..%2f..%2fetc%2fpasswd",
        "/spec/people.csv",
        "/file/../people.csv",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/file/%2fetc/passwd",
    ],
)
def test_paths_lead_nowhere_else(browser: Browser, where: str) -> None:
    assert browser.get(where).status_code == 404
