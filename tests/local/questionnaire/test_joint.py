"""Tables of two items, with the true shares in their intervals."""

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.questionnaire import Item, Questionnaire, joint_table
from sourdine.testing import SeededBits


def test_a_table_of_two_items_is_read_off_their_question() -> None:
    first, second = Item("way", ("foot", "car")), Item("lunch", ("no", "yes", "both"))
    survey = Questionnaire(name="office", epsilon=4, items=(first, second), joint=(("way", "lunch"),))
    (question,) = survey.questions
    truth = np.array([[0.3, 0.1, 0.1], [0.05, 0.25, 0.2]])
    answers = np.repeat(np.arange(6), (truth.ravel() * 4000).astype(int))
    counts = question.tally(question.oracle.pack(question.oracle.sample(answers, SeededBits(1))))
    table = joint_table(survey.asks[0], question.estimate(counts, 0.999))
    assert table.value.shape == (2, 3)
    assert ((table.lower <= truth) & (truth <= table.upper)).all()
    assert np.abs(table.value - truth).max() < 0.05
    with pytest.raises(InvalidParameter, match="two items"):
        joint_table((first,), question.estimate(counts))
