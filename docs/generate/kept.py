"""Executed notebooks, kept by the hash of all that they depend on."""

import base64
import hashlib
import json
import sys
from dataclasses import asdict
from functools import lru_cache
from importlib.metadata import distributions
from pathlib import Path

from notebooks import Executed

ROOT = Path(__file__).parents[2]
_FOLDER = ROOT / ".docs"


def find(script: Path) -> Executed | None:
    """What a script made when nothing was different; None if something was, or it was never run."""
    try:
        kept = json.loads(_place(script).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if kept.pop("key") != _key(script):
        return None
    pictures = {name: base64.b64decode(content) for name, content in kept.pop("pictures").items()}
    return Executed(pictures=pictures, **kept)


def keep(script: Path, made: Executed) -> None:
    """Keep what a script made, instead of what it made before."""
    pictures = {name: base64.b64encode(content).decode() for name, content in made.pictures.items()}
    _FOLDER.mkdir(exist_ok=True)
    unfinished = _place(script).with_suffix(".tmp")
    text = json.dumps(asdict(made) | {"pictures": pictures, "key": _key(script)})
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(_place(script))


def _place(script: Path) -> Path:
    return _FOLDER / f"{script.stem}.json"


def _key(script: Path) -> str:
    return hashlib.sha256(script.read_bytes() + _around().encode()).hexdigest()


@lru_cache(maxsize=1)
def _around() -> str:
    """The hash of what all notebooks depend on, beside their own text."""
    digest = hashlib.sha256(sys.version.encode())
    for line in sorted(f"{each.name}=={each.version}" for each in distributions()):
        digest.update(f"{line}\n".encode())
    folders = (ROOT / "src", ROOT / "docs" / "samples", Path(__file__).parent)
    files = (path for folder in folders for path in folder.rglob("*"))
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
