"""One case at one batch, in this process: `python -m benchmarks.memory.measured CASE BATCH private|plain`."""

import json
import sys

import torch

from benchmarks.memory.cases import CASES
from sourdine.learning.memory.allocations import Allocations
from sourdine.learning.memory.dry_run import Keeping, cycle
from sourdine.learning.memory.model import Stage
from sourdine.learning.task import cross_entropy


def main() -> None:
    torch.set_num_threads(1)
    name, batch, way = sys.argv[1:]
    case = next(case for case in CASES if case.name == name)
    with Allocations() as taken:
        cycle(
            case.make,
            lambda: case.batch(int(batch)),
            loss=cross_entropy,
            optimizer=Keeping,
            watch=taken.mark,
            private=way == "private",
        )
    alone = (held.most for stage, held in taken.stages.items() if stage != Stage.MORE)
    print(json.dumps({"alone": max(alone), "parts": max(held.most for held in taken.stages.values())}))


if __name__ == "__main__":
    main()
