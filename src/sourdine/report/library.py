"""The script that draws charts, made once for each user and version of the library that holds it.

Making it takes seconds, and every page with a chart carries it whole. It is kept in the user's own cache, and
read from there only where nobody else could have written it: it runs in whatever page it is put into.
"""

import contextlib
import os
import stat
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sourdine.core import disk

_ENTRY = "window.vegaEmbed = vegaEmbed;"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@cache
def chart_library() -> str:
    """The JavaScript that draws charts, as one script."""
    import vl_convert

    folder = _folder()
    file = folder / f"charts-{version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, UnicodeError):
        if _ours(folder) and _ours(file) and (script := file.read_text("utf-8")):
            return script
    script = str(vl_convert.javascript_bundle(_ENTRY))
    with contextlib.suppress(OSError):  # no home, no room, no right: it is made anew each time
        folder.mkdir(mode=disk.OWNERS_FOLDER, parents=True, exist_ok=True)
        if _ours(folder):
            with disk.shared(False):
                disk.write_whole(file, script)
    return script


def _folder() -> Path:
    """Where programs keep what they can make again, by the convention of the system."""
    named = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", ""))
    try:
        return (named if named.is_absolute() else Path.home() / ".cache") / "sourdine"
    except RuntimeError:  # a user without a home
        return Path(os.devnull) / "sourdine"


def _ours(path: Path) -> bool:
    """Whether it is the user's own, and nobody else may write to it."""
    about = path.stat(follow_symlinks=False)
    if stat.S_ISLNK(about.st_mode):
        return False
    return os.name == "nt" or (about.st_uid == os.getuid() and not about.st_mode & _OTHERS)
