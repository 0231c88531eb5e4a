"""A bill of materials in CycloneDX: what a plain installation brings, with versions and licences.

cyclonedx-py writes it and holds it against its schema. The environment is made for it, so that it has nothing
else in it, and no path or address of the machine that made it may be in the file.
"""

import json
import platform
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path


def write_materials(wheel: Path, root: Path) -> Path:
    """Install the wheel into a fresh environment, and write its bill of materials beside the wheel."""
    name, version = wheel.name.split("-")[:2]
    path = wheel.with_name(f"{name}-{version}.cdx.json")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)  # pip is none of our materials
        python = next(Path(folder).glob("[bS][ic][nr]*/python*"))
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
        subprocess.run([*pip, "-c", root / "constraints.txt", wheel], check=True, stderr=subprocess.PIPE)
        for origin in Path(folder).rglob(f"{name}-*.dist-info/direct_url.json"):
            origin.unlink()  # where the wheel lay
        tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--validate"]
        about = ["--pyproject", str(root / "pyproject.toml"), "--mc-type", "library", "--spec-version", "1.6"]
        subprocess.run([*tool, *about, "-o", path, python], check=True, stderr=subprocess.PIPE)
        places = [folder, str(root), str(Path.home())]
        faults = material_faults(path.read_text(encoding="utf-8"), name, places)
    if faults:
        path.unlink()
        sys.exit("\n".join(faults))
    return path


def material_faults(text: str, name: str, places: list[str]) -> list[str]:
    """What is wrong with a bill of materials: nothing in it, or traces of the machine that made it.

    >>> material_faults('{"components": [], "a": "file:///srv/x"}', "sourdine", [])
    ['it names no component', 'it is not about sourdine', 'it tells file:// of this machine']
    """
    bill = json.loads(text)
    faults = [] if bill.get("components") else ["it names no component"]
    if bill.get("metadata", {}).get("component", {}).get("name") != name:
        faults.append(f"it is not about {name}")
    traces = ["file://", *places, *(word for word in (platform.node(),) if len(word) > 3)]
    found = [each for each in traces if re.search(rf"(?<!\w){re.escape(each)}", text)]
    return faults + [f"it tells {each} of this machine" for each in found]
