import numpy as np
import pytest

from sourdine.local.numeric.bounded import ridge_scores

PLACES = np.linspace(-1, 1, 9)


def channel() -> np.ndarray:
    """Nine places and six codes, the nearer the likelier."""
    weights = np.exp(-np.abs(PLACES[:, None] - np.linspace(-1, 1, 6)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("reports", [1, 50])
def test_scores_are_those_of_stacked_least_squares(reports: int) -> None:
    law, ridges = channel(), (0.25, 4.0)
    for ridge, found in zip(ridges, ridge_scores(law, PLACES, ridges, reports), strict=True):
        priced = np.diag(np.sqrt(law.mean(axis=0) * ridge / reports))
        stacked = np.concatenate([law / 3, priced])  # 3 is the root of how many places there are
        wanted = np.linalg.lstsq(stacked, np.concatenate([PLACES / 3, np.zeros(6)]), rcond=None)[0]
        assert found.codes == pytest.approx(wanted, abs=1e-9)


def test_bias_and_variance_are_those_of_the_law() -> None:
    law = channel()
    (found,) = ridge_scores(law, PLACES, (1.0,), 10)
    for row, place, bias, variance in zip(law, PLACES, found.bias, found.variance, strict=True):
        mean = sum(p * score for p, score in zip(row, found.codes, strict=True))
        assert bias == pytest.approx(mean - place)
        spread = sum(p * (score - mean) ** 2 for p, score in zip(row, found.codes, strict=True))
        assert variance == pytest.approx(spread)


def test_more_reports_leave_less_bias_and_more_variance() -> None:
    (few,), (many,) = (ridge_scores(channel(), PLACES, (1.0,), reports) for reports in (10, 1000))
    assert np.abs(many.bias).max() < np.abs(few.bias).max()
    assert many.variance.max() > few.variance.max()
