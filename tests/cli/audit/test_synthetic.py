import json

import pytest

from tests.cli.table_case import run


@pytest.mark.slow
def test_an_honest_table_is_not_refuted() -> None:
    code, out, _ = run("audit", "synthetic", "--runs", "1000", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["good"]
    assert told["plan"] is None
    assert 0 <= told["tables"]["audited"] <= told["tables"]["claimed"] == 1


def test_few_runs_are_refused_in_a_sentence() -> None:
    code, out, err = run("audit", "synthetic", "--runs", "10")
    assert (code, out, err.count("\n")) == (2, "", 1)
