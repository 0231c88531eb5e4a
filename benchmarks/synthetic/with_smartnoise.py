"""MST of smartnoise-synth: `python -m benchmarks.synthetic.with_smartnoise QUESTION`, in its environment."""

import json
import resource
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from snsynth import Synthesizer

from benchmarks.synthetic.adult import DELTA, NAMES, SIZES, cells


def main() -> None:
    question = json.loads(sys.argv[1])
    real, _ = cells("train")
    frame = pd.DataFrame({name: real[:, place].astype(str) for place, name in enumerate(NAMES)})
    if question["iterations"]:
        _cap(question["iterations"])
    started, before = time.perf_counter(), time.process_time()
    model = Synthesizer.create("mst", epsilon=question["epsilon"], delta=DELTA)
    model.fit(frame, categorical_columns=NAMES)
    sample = model.sample(len(frame))
    seconds, processor = time.perf_counter() - started, time.process_time() - before
    columns = [
        np.clip(pd.to_numeric(sample[name], errors="coerce").fillna(0).astype(int), 0, size - 1)
        for name, size in zip(NAMES, SIZES, strict=True)
    ]
    np.save(question["path"], np.stack(columns, axis=1))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "processor": processor, "memory": memory}))


def _cap(iterations: int) -> None:
    """Let its estimation end after so many iterations."""
    from mbi import estimation

    whole = estimation.mirror_descent

    def capped(*words: Any, **options: Any) -> Any:
        options["iters"] = min(options.get("iters", 1000), iterations)
        return whole(*words, **options)

    estimation.mirror_descent = capped


if __name__ == "__main__":
    main()
