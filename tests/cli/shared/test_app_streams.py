import io
import json
import os
import subprocess
import sys

import pytest

from sourdine.cli.shared.app import soften_streams


@pytest.mark.parametrize(
    ("text", "encoding", "written"),
    [
        ("ε = 1, δ = 10⁻⁵", "ascii", b"epsilon = 1, delta = 10-5"),
        ("50\N{NO-BREAK SPACE}% – Rényi", "ascii", b"50 % - Renyi"),
        ("50\N{NO-BREAK SPACE}% Rényi ε", "latin-1", b"50\xa0% R\xe9nyi epsilon"),
        ("漢", "ascii", b"?"),
        ("\udcff", "utf-8", b"?"),
        ("ε", "utf-8", "ε".encode()),
    ],
)
def test_what_an_encoding_lacks_is_written_in_letters(
    monkeypatch: pytest.MonkeyPatch, text: str, encoding: str, written: bytes
) -> None:
    for name in ("stdout", "stderr"):
        held = io.BytesIO()
        monkeypatch.setattr(sys, name, io.TextIOWrapper(held, encoding=encoding))
        soften_streams()
        stream = getattr(sys, name)
        stream.write(text)
        stream.flush()
        assert held.getvalue() == written


def test_an_old_terminal_gets_words_and_whole_json() -> None:
    both = (  # in one process, since starting one takes long
        "import sys\n"
        "from sourdine.cli import main\n"
        "for more in ([], ['--json']):\n"
        "    sys.argv = ['sourdine', 'budget', 'explain', '1', '--delta', '1e-5', *more]\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert not end.code\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", both],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    text = done.stdout.decode("ascii")
    assert text.startswith("epsilon = 1, delta = 1e-5\n")
    found = json.loads(text[text.index("\n{") :])
    assert any("δ = 1e-5 is not the probability" in word for word in found["words"])
