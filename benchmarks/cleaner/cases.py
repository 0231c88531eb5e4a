"""The columns of the Pima table, made-up values in them, and who cleans them.

Only the standard library and numpy are imported here, since this file is also read inside the peer's
environment.
"""

import numpy as np

from benchmarks.peers import Environment

OURS = Environment(name="sourdine")
DIFFPRIVLIB = Environment(
    name="diffprivlib",
    requirements=("diffprivlib==0.6.6", "scikit-learn==1.6.1", "scipy==1.17.1", "numpy==2.4.6"),
)
# lower and upper bound, and the grid: whole numbers where it is 1
COLUMNS = {
    "Pregnancies": (0.0, 20.0, 1.0),
    "Glucose": (40.0, 250.0, 1.0),
    "BloodPressure": (30.0, 140.0, 1.0),
    "SkinThickness": (5.0, 70.0, 1.0),
    "Insulin": (10.0, 600.0, 1.0),
    "BMI": (15.0, 70.0, 0.1),
    "DiabetesPedigreeFunction": (0.05, 2.5, 0.001),
    "Age": (18.0, 90.0, 1.0),
}
OUTCOME = "Outcome"


def values(rows: int) -> dict[str, np.ndarray]:
    """Made-up values, each column even over its range; public, so any generator will do."""
    generator = np.random.default_rng(1)
    made = {
        name: np.rint(generator.uniform(low, high, rows) / step) * step
        for name, (low, high, step) in COLUMNS.items()
    }
    return made | {OUTCOME: (generator.random(rows) < 0.35).astype(np.int64)}
