"""Private estimators in scikit-learn's form: fixed blocks of exact sums, paid for before rows are read.

Each fit is (epsilon, delta)-DP for one row. They need scikit-learn, the extra `sklearn`.
"""

from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import install_line

try:
    import sklearn  # noqa: F401
except ImportError as problem:
    raise InvalidParameter(
        "The estimators need scikit-learn, which is not installed. "
        f"Install it with: {install_line('sklearn')}"
    ) from problem

from sourdine.estimators.binning import Binner
from sourdine.estimators.clusters import KMeans
from sourdine.estimators.components import PCA
from sourdine.estimators.linear import LeastSquaresClassifier, LeastSquaresRegressor
from sourdine.estimators.logistic import LogisticRegression
from sourdine.estimators.naive_bayes import NaiveBayes
from sourdine.estimators.payment import ExactScoreWarning
from sourdine.estimators.scaling import StandardScaler
from sourdine.estimators.search import PrivateSearchCV
from sourdine.estimators.storage import from_json

__all__ = [
    "PCA",
    "Binner",
    "ExactScoreWarning",
    "KMeans",
    "LeastSquaresClassifier",
    "LeastSquaresRegressor",
    "LogisticRegression",
    "NaiveBayes",
    "PrivateSearchCV",
    "StandardScaler",
    "from_json",
]
