"""Programs run in environments of their own, which answer questions in JSON.

A benchmark names an `Environment` for each library and starts one of its own modules there. That module
calls `serve` with a function from question to answer. The process stays alive between questions, so
libraries can be measured in turn, and what changes on the machine meanwhile falls on all of them.

Only the standard library is imported here, since this file is also read inside the environments.
"""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / ".bench"

Question = dict[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A Python with pinned requirements. Without requirements, it is the Python that runs the benchmark."""

    name: str
    requirements: tuple[str, ...] = ()

    @property
    def python(self) -> Path:
        """The interpreter, once `prepare` has run."""
        return self._folder / "bin" / "python" if self.requirements else Path(sys.executable)

    @property
    def _folder(self) -> Path:
        return ENVIRONMENTS / self.name

    @property
    def ready(self) -> bool:
        """Whether the environment exists with these very requirements."""
        stamp = self._folder / "requirements.txt"
        return not self.requirements or (stamp.exists() and stamp.read_text().split() == [*self.requirements])

    def prepare(self) -> None:
        """Makes the environment, unless an earlier run has."""
        if self.ready:
            return
        shutil.rmtree(self._folder, ignore_errors=True)
        _succeed(sys.executable, "-m", "venv", str(self._folder))
        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _succeed(str(self.python), *install, *self.requirements)
        (self._folder / "requirements.txt").write_text("\n".join(self.requirements) + "\n")

    def start(self, module: str) -> "Worker":
        """A process of this environment that runs `python -m module`, ready for questions."""
        return Worker([str(self.python), "-m", module])

    def ask_once(self, module: str, question: Question) -> Answer:
        """The answer of a fresh process, for what happens only the first time."""
        with self.start(module) as worker:
            return worker.ask(question)


class Worker:
    """A running program that answers questions."""

    def __init__(self, command: list[str]) -> None:
        self._name = " ".join(command)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def ask(self, question: Question, limit: float | None = None) -> Answer:
        """Sends a question and waits for its answer, or ends the program after so many seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        if limit is not None and not select.select([self._process.stdout], [], [], limit)[0]:
            self._process.kill()
            raise TimeoutError(f"{self._name} gave no answer within {limit:.0f} s.")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} stopped without an answer; its error is above.")
        answer: Answer = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # closing its input is the sign to stop


def serve(answer: Callable[[Question], Answer]) -> None:
    """Answers questions from standard input until it closes."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    for line in sys.stdin:
        replies.write(json.dumps(answer(json.loads(line))) + "\n")
        replies.flush()


def versions(*packages: str) -> dict[str, str]:
    """The installed version of each package."""
    return {package: version(package) for package in packages}


def _succeed(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}")
