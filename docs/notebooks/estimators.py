# %% [markdown]
# # Models in scikit-learn's form
#
# diffprivlib introduces itself by a naive Bayes on irises and a linear regression on diabetes. Here are both
# with Sourdine, on the rows that come with scikit-learn. Nothing is downloaded.

# %%
import numpy as np
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import sourdine as sd
from sourdine.core.display import Figure
from sourdine.estimators import LeastSquaresRegressor, NaiveBayes, PrivateSearchCV, StandardScaler
from sourdine.report.charts.base import Axis, Series, draw_lines

# %% [markdown]
# ## Irises: which of three
# The range of a petal is declared by somebody who knows flowers, not read from these. diffprivlib takes the
# range of the rows where nobody declares one, and warns that this leaks; here `fit` refuses.

# %%
inputs, kinds = load_iris(return_X_y=True)
fit_rows, test_rows, fit_kinds, test_kinds = train_test_split(inputs, kinds, test_size=0.2, random_state=1)
centimetres = [(4, 8), (2, 5), (1, 7), (0, 3)]
model = NaiveBayes(epsilon=1, delta=1e-4, bounds=centimetres, bins=6, classes=[0, 1, 2])
model.fit(fit_rows, fit_kinds)
right = model.predict(test_rows) == test_kinds
print(f"{right.mean():.0%} of 30 irises, at epsilon {model.epsilon_:.3f}")

# %% [markdown]
# The same for more and less privacy: the mean of twenty fits each. On private rows every one of these fits
# would have to be paid, and an exact score on them would not be private; the test rows stand for public ones.

# %%
rows = []
for epsilon in (0.1, 0.3, 1, 3, 10):
    once = NaiveBayes(epsilon=epsilon, delta=1e-4, bounds=centimetres, bins=6, classes=[0, 1, 2])
    scores = [np.mean(once.fit(fit_rows, fit_kinds).predict(test_rows) == test_kinds) for _ in range(20)]
    rows.append({"epsilon": epsilon, "accuracy": float(np.mean(scores)), "model": "naive Bayes"})
Figure(
    title="Naive Bayes on 120 irises: accuracy against epsilon",
    chart=draw_lines(
        rows,
        x=Axis(field="epsilon", title="epsilon at delta = 1e-4", log=True),
        y=Axis(field="accuracy", title="accuracy on 30 others, mean of 20 fits", form=".0%"),
        series=Series(field="model", names=("naive Bayes",)),
    ),
)

# %% [markdown]
# ## Diabetes: a line through one column
# The progress of diabetes a year later, by body mass index. The ledger is opened once, and each fit is paid
# before a row is read.

# %%
people, progress = load_diabetes(return_X_y=True, scaled=False)
mass = people[:, [2]]
ledger = sd.Ledger.create("diabetes.ledger", epsilon=5, delta=1e-5, unit="patient")
line = LeastSquaresRegressor(
    epsilon=3, delta=1e-5, bounds=(15, 45), target_bounds=(0, 350), ledger="diabetes.ledger"
)
line.fit(mass, progress)
(lower, upper), exact = line.intervals()[0], LinearRegression().fit(mass, progress)
print(f"progress by a point of body mass index: {line.coef_[0]:.1f}, 95% interval [{lower:.1f}, {upper:.1f}]")
print(f"without noise {exact.coef_[0]:.1f}")

# %% [markdown]
# The interval is about what the noise may have done. diffprivlib's regression adds no noise to a column with
# bounds such as (0, 100): it takes the lower bound twice for the square of the column (0.6.6, its issue 105).
# Here bounds decide the scale of rows, and every row has at most the length that is paid for. Wide
# bounds cost accuracy: the slope is shrunk towards 0 where noise could have made it.

# %%
zero = LeastSquaresRegressor(epsilon=3, delta=1e-5, bounds=(0, 100), target_bounds=(0, 350))
first, second = (zero.fit(mass, progress).coef_[0] for _ in range(2))
print(f"two fits with bounds (0, 100) differ: {first:.2f} and {second:.2f}")

# %% [markdown]
# ## A pipeline, and a choice that is paid
# A private scaler before a private model pays twice, once for each. Which length rows are shortened to is
# chosen by the rows themselves, so that choice is paid too.

# %%
both = make_pipeline(
    StandardScaler(epsilon=1, delta=1e-5, bounds=centimetres),
    NaiveBayes(epsilon=1, delta=1e-5, bounds=(-3, 3), bins=6, classes=[0, 1, 2]),
)
print(f"scaled: {np.mean(both.fit(fit_rows, fit_kinds).predict(test_rows) == test_kinds):.0%}")
search = PrivateSearchCV(
    NaiveBayes(bounds=centimetres, classes=[0, 1, 2]), {"bins": [3, 6, 12]}, epsilon=3, delta=1e-4
)
print("chosen:", search.fit(inputs, kinds).best_params_)

# %% [markdown]
# ## Hand it over
# A card says what the model is, what it cost and what that rests on; the ledger says what is left.

# %%
print(line.card().text()[:500], "...")
print(ledger.status())
ledger.close()

# %% [markdown]
# ## Next
# More of each: [the tutorial](../tutorials/estimators.md). How they compare with others on larger tables:
# [the benchmark](../benchmarks/estimators.md). Why it holds: [the proofs](../guarantees/estimators.md).
