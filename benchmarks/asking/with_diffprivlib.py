"""diffprivlib's linear regression (the functional mechanism) on columns within [0, 1]."""

import numpy as np
from diffprivlib.models import LinearRegression

from benchmarks.peers import Answer, Question, serve, versions


def answer(question: Question) -> Answer:
    x, y = np.array(question["x"])[:, None], np.array(question["y"])
    slopes = []
    for run in range(question["runs"]):
        model = LinearRegression(
            epsilon=question["epsilon"], bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0), random_state=run
        )
        slopes.append(float(np.ravel(model.fit(x, y).coef_)[0]))
    return {"slopes": slopes, "versions": versions("diffprivlib")}


if __name__ == "__main__":
    serve(answer)
