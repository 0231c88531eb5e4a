"""`sourdine reproduce mutants`: what was broken on purpose is audited, and all of it must be caught.

The mutants are in the tests of the checkout that this package was installed from.
"""

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import typer

from sourdine.cli.audit.training import plain as plain_training
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, Seed, bits_of, check_seed, number
from sourdine.core import check
from sourdine.core.errors import SourdineError

_OWNER = "reproduce mutants"
_ENOUGH = 10**6  # samples
_CLASSES, _DELTA = 10, 1e-6


def mutants(
    *,
    kind: Annotated[str, typer.Argument(help="mechanisms, training or plans.")] = "mechanisms",
    samples: Annotated[
        int, typer.Option(help="Answers of a mechanism for each of two neighbours.")
    ] = _ENOUGH,
    pairs: Annotated[int, typer.Option(help="Pairs of neighbouring tables for each fault of plans.")] = 400,
    epsilon: Annotated[str, typer.Option(help="Epsilon that each training claims.")] = "4",
    steps: Annotated[int, typer.Option(help="Steps of each training.")] = 20,
    canaries: Annotated[int, typer.Option(help="Canaries of each training.")] = 2000,
    gradients: Annotated[int, typer.Option(help="Canaries in gradient space.")] = 20_000,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Audit what was broken on purpose: mechanisms, training, or the planner of releases. All must be caught.

    Exit code 1 means that a mutant got away, or that honest training was accused.

    Examples: sourdine reproduce mutants · sourdine reproduce mutants training --seed 1 ·
    sourdine reproduce mutants plans
    """
    check_seed(_OWNER, seed)
    if kind == "mechanisms":
        good = _mechanisms(samples, seed, as_json)
    elif kind == "training":
        good = _training(
            epsilon=float(number(_OWNER, "epsilon", epsilon, 0, 1 << 20)),
            steps=steps,
            canaries=canaries,
            gradients=gradients,
            seed=seed,
            as_json=as_json,
        )
    elif kind == "plans":
        good = _plans(pairs, 1 if seed is None else seed, as_json)
    else:
        raise check.fail(_OWNER, "kind", "be mechanisms, training or plans", kind)
    raise typer.Exit(0 if good else 1)


def load(name: str) -> ModuleType:
    """Import a module of the checkout's tests, such as "mutants"."""
    if "tests" not in sys.modules:
        # Any distribution may have installed a package of this name: the checkout's is loaded by its path.
        package = ModuleType("tests")
        package.__path__ = [str(_checkout() / "tests")]
        sys.modules["tests"] = package
    return import_module(f"tests.{name}")


def _checkout() -> Path:
    """Find the checkout: above an editable installation, or where pip recorded that it installed from."""
    record = json.loads(distribution("sourdine-reproduction").read_text("direct_url.json") or "{}")
    roots = [Path(__file__).resolve().parents[3]]
    if "url" in record:
        roots.append(Path(url2pathname(urlparse(record["url"]).path)).parent)
    for root in roots:
        if (root / "tests" / "mutants").is_dir():
            return root
    raise SourdineError("The mutants are in the source checkout: pip install -e ./reproduction")


def _report(
    results: list[dict[str, Any]], rows: Sequence[tuple[str, ...]], columns: tuple[str, ...], as_json: bool
) -> bool:
    caught = sum(bool(each["caught_by"]) for each in results)
    if as_json:
        show.document({"caught": caught, "of": len(results), "results": results})
    else:
        show.table(columns, rows, numbers=("claimed", "audited", "law (p)"))
        show.line(f"caught {caught}/{len(results)}")
    return caught == len(results)


def _mechanisms(samples: int, seed: int | None, as_json: bool) -> bool:
    from sourdine.audit.examination import in_order
    from sourdine.audit.lower_bound import FALSE_ALARM

    every = load("mutants").all_mutants()
    alarm = FALSE_ALARM / len(every)
    tasks = [
        lambda bits, one=one: one.examine(samples=samples, false_alarm=alarm, bits=bits) for one in every
    ]
    verdicts = list(zip(show.progress("examining mutants", every), in_order(tasks, seed), strict=True))
    results = [
        {
            "mutant": one.name,
            "fault": one.fault,
            "caught_by": verdict.caught_by,
            "claimed": verdict.bound.claimed,
            "audited": verdict.bound.audited,
            "law": verdict.law,
            "ties": verdict.ties,
        }
        for one, verdict in verdicts
    ]
    rows = [
        (
            one.name,
            one.fault,
            verdict.caught_by or "NOTHING",
            f"{verdict.bound.claimed:.3f}",
            f"{verdict.bound.audited:.3f}",
            "" if verdict.law is None else f"{verdict.law:.1g}",
        )
        for one, verdict in verdicts
    ]
    columns = ("mutant", "what is wrong", "caught by", "claimed", "audited", "law (p)")
    return _report(results, rows, columns, as_json)


def _training(
    *, epsilon: float, steps: int, canaries: int, gradients: int, seed: int | None, as_json: bool
) -> bool:
    from sourdine.cli.train.options import need_torch

    need_torch()
    from sourdine.audit.training import audit_training, pixel_canaries
    from sourdine.learning import Execution, TrainingPlan
    from sourdine.learning.devices.placement import one_thread
    from sourdine.learning.models import linear

    every = load("mutants.training").BROKEN
    batch = (canaries // 2 + gradients // 2) // 2
    plan = TrainingPlan(epsilon=epsilon, delta=_DELTA, steps=steps, batch_size=batch)
    settings: dict[str, Any] = {
        "canaries": pixel_canaries((canaries,), _CLASSES, canaries),
        "gradients": gradients,
        "execution": Execution(physical_batch_size=1024),  # canaries take little memory: none is measured
    }
    with one_thread():
        honest = audit_training(
            linear((canaries,), _CLASSES), None, plan, **settings, bits=bits_of(_OWNER, seed)
        )
        audits = [
            (
                one,
                one.audited(linear((canaries,), _CLASSES), plan, **settings, bits=bits_of(_OWNER, seed)),
            )
            for one in show.progress("auditing training", every)
        ]
    results = [
        {"mutant": one.name, "fault": one.fault, "caught_by": _caught_by(audit)}
        | {key: value for key, value in plain_training(audit).items() if key != "roc"}
        for one, audit in audits
    ]
    rows = [
        (one.name, one.fault, _caught_by(audit) or "NOTHING", f"{audit.claimed:.3f}", f"{audit.audited:.3f}")
        for one, audit in audits
    ]
    good = _report(results, rows, ("training", "what is wrong", "caught by", "claimed", "audited"), as_json)
    if honest.refuted:
        show.line(f"Honest training is ACCUSED by {_caught_by(honest)}.", aside=True)
    return good and not honest.refuted


def _caught_by(audit: Any) -> str:
    return ", ".join([*(["trained model"] if audit.exceeded else []), *(each.name for each in audit.faults)])


def _plans(pairs: int, seed: int, as_json: bool) -> bool:
    every = load("faults").FAULTS
    audits = [(one, one.examined(pairs, seed)) for one in show.progress("planting faults", every)]
    results = [
        {"mutant": one.name, "caught_by": "" if audit.good else audit.violations[0].words}
        for one, audit in audits
    ]
    rows = [
        (one.name, "NOTHING" if audit.good else audit.violations[0].words.partition(" Replay")[0])
        for one, audit in audits
    ]
    return _report(results, rows, ("fault", "caught by"), as_json)
