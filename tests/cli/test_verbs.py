import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.cli import app, verbs
from sourdine.cli.verbs import PLUGINS, VERBS, PluginVerb, Verb, asked_for, make_app, plugin_verbs
from sourdine.core.distance import Neighbours
from sourdine.core.errors import SourdineError

HEAVY = {
    "numpy",
    "scipy",
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "torch",
    "sklearn",
    "altair",
    "jinja2",
    "sqlglot",
    "fsspec",
}


def test_summaries_are_the_first_words_of_each_help() -> None:
    commands = getattr(get_command(app), "commands")  # noqa: B009
    assert sorted(commands) == sorted(verb.name for verb in (*VERBS, *plugin_verbs()))
    for verb in VERBS:
        said = commands[verb.name].help.split("\n\n")[0]
        assert verb.summary == " ".join(said.split()), verb.name


def test_the_list_is_the_same_whether_verbs_are_loaded_or_not() -> None:
    runner = CliRunner()
    full, names_only = (runner.invoke(make_app(verbs), ["--help"]).stdout for verbs in (VERBS, ()))
    assert full == names_only
    assert all(verb.name in full for verb in VERBS)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["demo"], ["demo"]),
        (["--shared", "release", "plan"], ["release"]),
        (["--allowance", "plan", "sql", "x"], ["sql"]),
        (["--allowance=plan", "sql"], ["sql"]),
        (["--help"], []),
        ([], []),
        (["--allowance"], []),
        (["explain"], [verb.name for verb in VERBS]),
    ],
)
def test_only_the_verb_that_is_asked_for_is_loaded(words: list[str], names: list[str]) -> None:
    assert [verb.name for verb in asked_for(words)] == names


def test_a_verb_is_the_same_alone_as_among_all() -> None:
    runner, words = CliRunner(), ["budget", "dpsgd", "--help"]
    alone = runner.invoke(make_app(asked_for(words)), words)
    assert alone.stdout == runner.invoke(app, words).stdout
    assert alone.exit_code == 0


def test_a_verb_of_another_group_is_told_where_it_is() -> None:
    result = CliRunner().invoke(make_app(asked_for(["explain"])), ["explain"])
    assert "sourdine budget explain" in result.stderr


def test_the_list_of_verbs_waits_for_nothing_heavy() -> None:
    code = (
        "import sys\nfrom sourdine.cli import main\nsys.argv = ['sourdine', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'rich', 'pydantic', 'duckdb'} & sys.modules.keys()\n"
        "sys.exit(' '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout


def test_the_options_of_every_verb_wait_for_nothing_heavy() -> None:
    """All verbs loaded, in a process that says what it has loaded."""
    code = (
        "import sys\nfrom typer.main import get_command\nfrom typer import Context\n"
        "from sourdine.cli.verbs import make_app\n"
        "def walk(command):\n"
        "    below = getattr(command, 'commands', {}).values()\n"
        "    command.get_usage(Context(command))\n"
        "    return 1 + sum(map(walk, below))\n"
        "print(walk(get_command(make_app())), *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, *loaded = done.stdout.split()
    assert int(count) > 70
    assert not HEAVY & set(loaded)


USES = {  # what a small use of a verb does without, beside what draws charts, reads tables or trains
    "ledger status t.ledger": "scipy",
    "ledger history t.ledger": "scipy",
    "certificate keys office": "numpy scipy",
    "local spec coffee --epsilon 1 --labels labels.txt": "scipy.linalg",
    "init t.csv": "scipy",
    "budget explain 1": "",
    "reproduce": "scipy.optimize scipy.stats",
}


@pytest.mark.slow
@pytest.mark.parametrize("words", USES)
def test_a_small_use_waits_for_nothing_that_only_others_need(words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    (tmp_path / "labels.txt").write_text("tea\ncoffee\n")
    terms = Terms(budget=PureBudget(limit=1), unit="person", neighbours=Neighbours.ADD_REMOVE)
    Ledger.create(tmp_path / "t.ledger", terms).close()
    code = (
        f"import sys\nfrom sourdine.cli import main\nsys.argv = ['sourdine', *{words!r}.split()]\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded = set(done.stderr.split())
    others = HEAVY - {"numpy", "scipy"} | set(USES[words].split())
    assert not loaded & others


@pytest.mark.slow
def test_a_release_waits_for_nothing_that_only_others_need(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    (tmp_path / "t.toml").write_text(
        '[table]\nsource = "t.csv"\n[privacy]\nunit = "person"\nledger = "t.ledger"\nepsilon = 1\n'
        '[columns.x]\ntype = "integer"\nlower = 0\nupper = 9\n[[queries]]\nname = "people"\nask = ["count"]\n'
    )
    terms = Terms(budget=PureBudget(limit=1), unit="person", neighbours=Neighbours.ADD_REMOVE)
    Ledger.create(tmp_path / "t.ledger", terms).close()
    code = (
        "import sys\nfrom sourdine.cli import main\n"
        "sys.argv = ['sourdine', 'release', 't.toml', '--no-report']\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded = set(done.stderr.split())
    assert "sourdine.tables.release" in loaded
    assert not loaded & {"altair", "jinja2", "sqlglot", "scipy", "pyarrow"}
    ours = ("accounting.certificate.keys", "tables.series.plan", "tables.synthetic.model")
    assert not loaded & {f"sourdine.{name}" for name in ours}


def test_a_verb_knows_whether_it_is_a_group() -> None:
    assert [verb.name for verb in VERBS if verb.is_group][:2] == ["anonymity", "audit"]
    assert Verb("demo", "demo", "demo", "").load().__name__ == "demo"


def test_an_installed_package_adds_a_command_that_is_imported_when_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greeting.py").write_text("def greet() -> None:\n    print('good day')\n")
    added = EntryPoint("greet", "greeting:greet", PLUGINS)
    hidden = EntryPoint("release", "greeting:greet", PLUGINS)  # the name of a command of ours
    monkeypatch.setattr(verbs, "entry_points", lambda group: (added, hidden))
    monkeypatch.syspath_prepend(tmp_path)
    plugin_verbs.cache_clear()
    try:
        assert [verb.name for verb in plugin_verbs()] == ["greet"]
        listing = CliRunner().invoke(make_app(()), ["--help"]).stdout
        assert "greet" in listing
        assert "greeting" not in sys.modules
        assert CliRunner().invoke(make_app(asked_for(["greet"])), ["greet"]).stdout == "good day\n"
    finally:
        plugin_verbs.cache_clear()


def test_a_command_whose_package_is_broken_is_a_sentence() -> None:
    point = EntryPoint("greet", "no_such_module:greet", PLUGINS)
    broken = PluginVerb("greet", "no_such_module", "greet", "", point)
    with pytest.raises(SourdineError, match="no_such_module"):
        broken.load()


def test_a_command_of_the_checkout_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "entry_points", lambda group: ())
    plugin_verbs.cache_clear()
    try:
        for words in (["reproduce"], ["reproduce", "all", "--quick"], ["reproduce", "--help"]):
            result = CliRunner().invoke(make_app(asked_for(words)), words)
            assert "pip install ./reproduction" in result.stderr
            assert result.exit_code == 2
    finally:
        plugin_verbs.cache_clear()
