"""The lock: all that a plain installation and the light extras take, with the digests of every file.

`pip install --require-hashes -r requirements.lock` takes these files and no others. torch and Spark
are left out: torch comes in builds for each machine, and both are large. Versions are those of
`constraints.txt`, and the file names no index.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
EXTRAS = ("collect", "excel", "postgres", "sklearn", "studio")
_HEAD = f"""\
# Sourdine's dependencies and those of the extras {", ".join(EXTRAS)}; `make lock` writes it anew.
# pip install --require-hashes -r requirements.lock, then pip install --no-deps with the wheel of Sourdine.
"""


@dataclass(frozen=True, kw_only=True)
class LockedDistribution:
    """One line of the lock: a distribution in one version, where it is needed, and its digests."""

    name: str
    version: str
    marker: str
    digests: tuple[str, ...]


def main() -> None:
    """Write the lock anew, from pyproject.toml and constraints.txt."""
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    shape = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header"]
    quiet = ["--no-emit-index-url", "--no-emit-find-links", "--no-config", "--quiet"]
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "-c", "constraints.txt"]
    done = subprocess.run(
        [*command, *extras, *shape, *quiet], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"uv could not lock the dependencies:\n{done.stderr}")
    LOCK.write_text(_HEAD + done.stdout, encoding="utf-8")
    print(f"{LOCK.name} has {len(read_lock(LOCK.read_text(encoding='utf-8')))} distributions.")


def read_lock(text: str) -> dict[str, LockedDistribution]:
    r"""The lines of a lock, by the names of the distributions, in small letters and with hyphens.

    >>> read_lock("# a comment\nnumpy==2.0 \\\n    --hash=sha256:ab\n")["numpy"].version
    '2.0'
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = {}
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        requirement, *digests = re.split(r"\s+--hash=sha256:", line.strip())
        pin, _, marker = requirement.partition(";")
        name, _, version = pin.strip().partition("==")
        found[plain_name(name)] = LockedDistribution(
            name=plain_name(name), version=version, marker=marker.strip(), digests=tuple(digests)
        )
    return found


def plain_name(name: str) -> str:
    """A distribution's name as indexes compare it, without its extras.

    >>> plain_name("Typing_Extensions"), plain_name("psycopg[binary]")
    ('typing-extensions', 'psycopg')
    """
    return re.sub(r"[-_.]+", "-", name.partition("[")[0].strip()).lower()


if __name__ == "__main__":
    main()
