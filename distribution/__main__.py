"""Build the wheel and the source distribution of the last commit into dist/, and check them.

Both are built twice, in two copies of the commit, and must come out byte for byte the same. The bill of
materials is of a fresh environment with the wheel alone.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from distribution.contents import sdist_faults, sdist_sizes, wheel_faults, wheel_sizes
from distribution.materials import write_materials

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m distribution", description=__doc__)
    parser.add_argument("--no-materials", action="store_true", help="without the bill of materials")
    options = parser.parse_args()
    if subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True, check=False).returncode:
        sys.exit("What is published is built from a commit, and this is no clone. Run it in a clone.")
    if _git("status", "--porcelain"):
        print("There are changes that are not committed: what is built is the last commit, without them.")
    tracked = _git("ls-tree", "-r", "--name-only", "-z", "HEAD").rstrip("\0").split("\0")
    with tempfile.TemporaryDirectory() as folder:
        built, again = (_build(Path(folder) / name) for name in ("built", "built again"))
        wheel, sdist = sorted(built.iterdir(), key=lambda path: path.suffix != ".whl")
        for path in (wheel, sdist):
            if path.read_bytes() != (again / path.name).read_bytes():
                sys.exit(f"Built twice, {path.name} came out in two ways.")
        faults = wheel_faults(wheel_sizes(wheel), tracked) + sdist_faults(sdist_sizes(sdist), tracked)
        if faults:
            sys.exit("\n".join(faults))
        _run("twine", "check", "--strict", wheel, sdist)
        shutil.rmtree(DIST, ignore_errors=True)
        made = [Path(shutil.copyfile(path, _made(DIST) / path.name)) for path in (wheel, sdist)]
    if not options.no_materials:
        made.append(write_materials(made[0], ROOT))
    commit = _git("rev-parse", "--short", "HEAD").strip()
    print(f"Built twice from {commit}, byte for byte the same, and checked:")
    for path in made:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{digest}  dist/{path.name}  {path.stat().st_size / 1e6:.1f} MB")


def _build(folder: Path) -> Path:
    """The folder of the wheel and the source distribution, built from a copy of the last commit."""
    packed = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", _made(folder)], input=packed.stdout, check=True)
    _run("build", "--no-isolation", "--outdir", folder / "dist", folder)  # the wheel is made from the sdist
    return folder / "dist"


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _run(module: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{module} failed:\n{done.stdout}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
