"""jax_privacy's bounds: by f-DP (epsilon_one_run_fdp) and by Steinke, Nasr, Jagielski (epsilon_one_run)."""

import importlib.util
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.audit.cases import ALARM, DELTA, scores
from benchmarks.peers import Answer, Question, serve, versions


def _auditing() -> object:
    """The module alone: the package around it would load jax, which the bounds do without."""
    package = importlib.util.find_spec("jax_privacy")
    assert package is not None
    assert package.submodule_search_locations is not None
    path = Path(package.submodule_search_locations[0]) / "auditing.py"
    spec = importlib.util.spec_from_file_location("auditing", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["auditing"] = module
    spec.loader.exec_module(module)
    return module


AUDITING = _auditing()


def answer(question: Question) -> Answer:
    if question.get("task") == "versions":
        return versions("jax-privacy")
    values, included = scores(question["seed"], question["canaries"], question["mu"])
    auditor = AUDITING.CanaryScoreAuditor(values[included], values[~included])  # type: ignore[attr-defined]
    start = perf_counter()
    bound = float(auditor.epsilon_one_run_fdp(ALARM, DELTA))
    return {"f-DP": bound, "seconds": perf_counter() - start}


if __name__ == "__main__":
    serve(answer)
