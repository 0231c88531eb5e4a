"""Units, container file, compose file and chart: each is parsed, and each command is one that there is."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import typer

from sourdine.cli.collect import app
from tests.documents import ROOT

FOLDER = ROOT / "deployment"
UNITS = sorted((FOLDER / "systemd").glob("*.service"))
PARTS = {"collector": "serve", "shuffler": "shuffle", "issuer": "issue"}
_VALUE = re.compile(r"\{\{ \.(Values|Release)\.([\w.]+) \}\}")


def read_command(words: Sequence[str]) -> dict[str, Any]:
    """The options of a command of `sourdine collect`; an error where it has no such ones."""
    group: Any = typer.main.get_command(app)
    context = group.commands[words[0]].make_context(words[0], list(words[1:]))
    return dict(context.params)


def yaml_documents(text: str) -> list[Any]:
    return list(pytest.importorskip("yaml").safe_load_all(text))


def read_unit(path: Path) -> dict[str, dict[str, str]]:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text(encoding="utf-8"))
    return {name: dict(parser[name]) for name in parser.sections()}


def check_part(name: str, found: dict[str, Any]) -> None:
    """What every way of running a part has to keep to."""
    if name == "shuffler":
        assert str(found["collector"]).startswith("https://") or found["plain_http"]
    if name != "collector":
        assert found["metrics_port"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_runs_a_command_that_there_is(path: Path) -> None:
    service = read_unit(path)["Service"]
    program, group, *words = shlex.split(service["ExecStart"])
    name = path.stem.removeprefix("sourdine-")
    assert (program, group, words[0]) == ("/usr/local/lib/sourdine/bin/sourdine", "collect", PARTS[name])
    found = read_command(words)
    check_part(name, found)
    assert found["host"] == "127.0.0.1"  # a proxy with TLS is before it
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["KillSignal"] == "SIGTERM"
    assert service["CapabilityBoundingSet"] == ""
    given = {each for each in service.get("LoadCredential", "").split(":") if "/" not in each}
    assert given <= {Path(word).name for word in words}


def test_there_is_a_unit_for_each_part() -> None:
    assert [path.stem for path in UNITS] == [f"sourdine-{name}" for name in sorted(PARTS)]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for path in UNITS:
        text = path.read_text(encoding="utf-8").replace(
            "/usr/local/lib/sourdine/bin/sourdine", sys.executable
        )
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    places = [str(tmp_path / path.name) for path in UNITS]
    done = subprocess.run(["systemd-analyze", "verify", *places], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_container_is_no_administrator_and_has_the_extras() -> None:
    lines = (FOLDER / "Containerfile").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    assert ["USER", "10001"] in words
    assert ["STOPSIGNAL", "SIGTERM"] in words
    (entry,) = (line.removeprefix("ENTRYPOINT ") for line in lines if line.startswith("ENTRYPOINT"))
    assert json.loads(entry) == ["/usr/local/lib/sourdine/bin/sourdine", "collect"]
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', "\n".join(lines))
    defined = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f"\n{extra} = [" in defined for extra in extras.split(","))


def test_secrets_are_in_no_commit_and_no_image() -> None:
    for name in (".gitignore", ".dockerignore"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        assert "deployment/secrets" in [line.rstrip("/") for line in lines]


def test_compose() -> None:
    (content,) = yaml_documents((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    services = content["services"]
    assert services.keys() == PARTS.keys()
    for name, service in services.items():
        found = read_command(service["command"])
        check_part(name, found)
        assert service["command"][0] == PARTS[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert set(service["secrets"]) <= content["secrets"].keys()
        used = {word.partition("/run/secrets/")[2] for word in service["command"] if "/run/secrets/" in word}
        assert used == set(service["secrets"])
        assert set(service["networks"]) <= content["networks"].keys()
        assert {each.partition(":")[0] for each in service["volumes"]} <= content["volumes"].keys()
        assert all(each.startswith("127.0.0.1:") for each in service.get("ports", []))
        compile(service["healthcheck"]["test"][-1], name, "exec")
        assert f":{found['port']}/" in service["healthcheck"]["test"][-1]
    gateway = content["networks"]["outside"]["ipam"]["config"][0]["gateway"]
    assert read_command(services["shuffler"]["command"])["proxy"] == [gateway]
    assert "outside" not in services["collector"]["networks"]


def rendered(text: str, values: dict[str, Any]) -> str:
    """A template as Helm renders it: these have conditions around the whole, and values, and nothing else."""
    body = re.fullmatch(r"\{\{- if \.Values\.(\w+)\.enabled \}\}\n(.*)\{\{- end \}\}\n", text, re.DOTALL)
    assert body is not None

    def value(found: re.Match[str]) -> str:
        if found[1] == "Release":
            return "reports"
        at: Any = values
        for name in found[2].split("."):
            at = at[name]
        return str(at)

    made = _VALUE.sub(value, body[2])
    assert "{{" not in made
    return made


def inside(content: Any) -> Iterator[Any]:
    yield content
    for each in content.values() if isinstance(content, dict) else content:
        if isinstance(each, dict | list):
            yield from inside(each)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_the_chart(name: str) -> None:
    (values,) = yaml_documents((FOLDER / "chart" / "values.yaml").read_text(encoding="utf-8"))
    text = (FOLDER / "chart" / "templates" / f"{name}.yaml").read_text(encoding="utf-8")
    claim, service, deployment = yaml_documents(rendered(text, values))
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    found = read_command(container["args"])
    check_part(name, found)
    assert container["args"][0] == PARTS[name]
    assert found["port"] == service["spec"]["ports"][0]["port"] == container["ports"][0]["containerPort"]
    assert found["proxy"] == [values["proxy"]]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert deployment["spec"]["replicas"] == 1
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    volumes = {each["name"]: each for each in pod["volumes"]}
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert volumes.keys() == mounts.keys()
    assert volumes["store"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    places = [word.partition("=")[2] or word for word in container["args"] if "/" in word]
    files = [place for place in places if place.startswith("/")]
    assert all(str(Path(place).parent) in mounts.values() for place in files)
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    (about,) = yaml_documents((FOLDER / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    assert values["image"].endswith(f":{about['appVersion']}")
    assert not [each for each in inside(deployment) if isinstance(each, dict) and each.get("hostNetwork")]
