"""Mutation testing: `python -m tests.mutation --sample 150`, or `make mutate`.

Small faults are made in a copy of the project, one at a time, and the tests must see each. What survives
shows that a test is missing, or is no fault: then explained.txt says why. A run that was stopped goes on.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant, mutants
from tests.mutation.trials import PACKAGE, Trials, areas, warm

KEPT = ("src", "tests", "benchmarks", "docs", "conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md")
EXPLAINED = Path("tests/mutation/explained.txt")
Result = dict[str, Any]
Results = dict[str, Result]
STATES = ("killed", "out of time", "survived", "unreached")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", default="150", help="how many mutants, spread over the rooms, or 'all'")
    parser.add_argument("--seed", type=int, default=0, help="which of them")
    parser.add_argument("--only", default="", help="only modules whose path begins so, such as core/grid")
    parser.add_argument(
        "--again", type=Path, help="the mutants of this file of results, and what has changed"
    )
    parser.add_argument("--out", type=Path, default=Path(".mutate"), help="where runs are kept")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was begun is ended
    if not options.inside:
        return in_a_copy(options.out)
    folder = options.out / digest()
    folder.mkdir(parents=True, exist_ok=True)
    warm()
    trials = Trials(folder, options.again.parent if options.again else folder)
    for test in trials.prepare():
        print(f"fails without a mutant, and is left out: {test}")
    before = results(options.again) if options.again else {}
    drawn = again(before) if before else draw(options.sample, options.seed, options.only)
    print(f"{len(drawn)} mutants; {folder / 'results.jsonl'}", flush=True)
    found = attempt(trials, drawn, before)
    unsure = set(
        trials.failures(sorted({one["killer"] for one in found if "(import)" not in one["killer"]} - {""}))
    )
    for one in found:
        if one["killer"] in unsure:
            print(f"fails without the mutant too: {one['killer']}: {one['key']}")
    return report(found, explanations(), before)


def in_a_copy(out: Path) -> int:
    """The same command, in a copy of the project that is thrown away."""
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        Path(folder).chmod(0o755)  # some tests read as another user
        copy = Path(folder) / "copy"
        copy.mkdir()
        for name in KEPT:
            if Path(name).is_dir():
                shutil.copytree(name, copy / name)
            else:
                shutil.copy2(name, copy / name)
        words = [str(Path(word).resolve()) if Path(word).is_file() else word for word in sys.argv[1:]]
        command = [sys.executable, "-m", "tests.mutation", *words, "--out", str(out.resolve()), "--inside"]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        more = {"PYTHONPATH": str(copy / "src"), "TMPDIR": folder, "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        process = subprocess.Popen(command, cwd=copy, env=os.environ | threads | more)
        try:
            return process.wait()
        finally:
            process.terminate()
            process.wait()


def digest() -> str:
    """A name for this state of the sources and tests."""
    whole = hashlib.sha256()
    for top in ("src", "tests", "conftest.py", "pyproject.toml"):
        for path in sorted([Path(top), *Path(top).rglob("*")]):
            if path.is_file() and "__pycache__" not in path.parts and "mutation" not in path.parts:
                whole.update(path.as_posix().encode() + path.read_bytes())
    return whole.hexdigest()[:12]


def draw(sample: str, seed: int, only: str) -> list[Mutant]:
    """As many sound mutants from each room, in the order of the seed, or all."""
    rooms = []
    for modules in areas().values():
        some = [one for name in modules if name.startswith(only) for one in mutants(name, source(name))]
        rooms.append(sorted(some, key=lambda one: one.order(seed)))
    turns = (one for turn in zip_longest(*rooms) for one in turn if one is not None)
    most = None if sample == "all" else int(sample)
    drawn: list[Mutant] = []
    for one in turns:
        if most is not None and len(drawn) == most:
            break
        if one.sound(source(one.module)):
            drawn.append(one)
    return drawn


def again(before: Results) -> list[Mutant]:
    """The mutants of these keys; `before` learns the new key of one whose function moved."""
    every = [one for modules in areas().values() for name in modules for one in mutants(name, source(name))]
    exact, moved = {one.key: one for one in every}, {_fault(one.key): one for one in every}
    for key in [key for key in before if key not in exact and _fault(key) in moved]:
        before[moved[_fault(key)].key] = before.pop(key)
    return [exact[key] for key in before if key in exact]


def _fault(key: str) -> str:
    """A key without its module."""
    return key.split(" ", 1)[1]


def source(module: str) -> bytes:
    return (PACKAGE / module).read_bytes()


def results(path: Path) -> Results:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {one["key"]: one for one in map(json.loads, lines)}


def attempt(trials: Trials, drawn: list[Mutant], before: Results) -> list[Result]:
    """Try each mutant that has no result yet, and keep what comes of it at once."""
    path = trials.folder / "results.jsonl"
    done = results(path)
    with path.open("a", encoding="utf-8") as to:
        for count, mutant in enumerate(drawn, 1):
            if mutant.key not in done:
                told: Result = {"key": mutant.key, "module": mutant.module, "operator": mutant.operator}
                told |= {"lines": mutant.lines, "before": mutant.before, "after": mutant.after}
                known = before.get(mutant.key, told | {"killer": ""})
                place = replace(mutant, module=known["module"], lines=tuple(known["lines"]))
                outcome = trials.run(mutant, place, known["killer"])
                done[mutant.key] = told | asdict(outcome)
                print(json.dumps(done[mutant.key], ensure_ascii=False), file=to, flush=True)
                print(f"{count:5} {done[mutant.key]['status']:11} {mutant.key[:150]}", flush=True)
    return [done[one.key] for one in drawn]


def explanations() -> dict[str, str]:
    """Why a mutant that survives is no fault, by its key: a line with the key, then indented ones."""
    found: dict[str, str] = {}
    key = ""
    for line in EXPLAINED.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            found[key] = f"{found.get(key, '')} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            key = line
    return found


def report(found: list[Result], explained: dict[str, str], before: Results) -> int:
    """A line for each module, each survivor without an explanation, and what no longer is killed."""
    table: dict[str, Counter[str]] = {}
    for one in found:
        table.setdefault(one["module"], Counter())[one["status"]] += 1
    width = max(map(len, table), default=5)
    print(f"\n{'module':{width}} " + " ".join(f"{state:>11}" for state in STATES))
    for module, counts in sorted(table.items()):
        print(f"{module:{width}} " + " ".join(f"{counts[state]:11}" for state in STATES))
    whole = Counter(one["status"] for one in found)
    print(f"{'all':{width}} " + " ".join(f"{whole[state]:11}" for state in STATES))
    alive = [one for one in found if one["status"] in ("survived", "unreached")]
    open_ones = [one for one in alive if one["key"] not in explained]
    print(f"\n{len(alive)} of {len(found)} survive; {len(alive) - len(open_ones)} of them are explained.")
    for one in open_ones:
        print(f"\n{one['status']}: {one['key']}\n  {one['module']}:{one['lines'][0]}, {one['operator']}")
        print(f"  - {one['before']}\n  + {one['after']}")
    now = {one["key"]: one["status"] for one in found}
    gone = [key for key in before if key not in now]
    lost = [
        key
        for key in now
        if before.get(key, {}).get("status") == "killed" and now[key] in ("survived", "unreached")
    ]
    if before:
        print(f"\n{len(gone)} of {len(before)} mutants before are gone from the source.")
        print(f"Killed then and alive now: {len(lost)}", *(f"  {key}" for key in lost), sep="\n")
    return 1 if open_ones or lost else 0


if __name__ == "__main__":
    sys.exit(main())
