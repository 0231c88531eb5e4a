"""The browser client in Node, which has the same WebCrypto: scripts over a pipe."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CLIENT = Path(__file__).parents[3] / "src/sourdine/collector/client"


def run(script: str, given: object = None, *, timeout: int = 600) -> Any:
    """What a script prints as JSON; `client` is the module and `given` what was passed to it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("The browser client's tests need Node 20 or later, which is not installed.")
    head = (
        f"import * as client from {json.dumps((CLIENT / 'sourdine.js').as_uri())};"
        "import { readFileSync } from 'node:fs';"
        "const given = JSON.parse(readFileSync(0, 'utf8'));"
    )
    done = subprocess.run(
        [node, "--input-type=module", "-e", f"{head}\n{script}"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
