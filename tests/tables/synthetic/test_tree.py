from itertools import product

import numpy as np

from sourdine.mechanisms import Exponential
from sourdine.tables.synthetic.measure import FINENESS, all_pairs, choose_tree, from_root, score
from sourdine.testing import SeededBits


def test_scores_of_all_neighbours_differ_by_their_sensitivity_and_no_more() -> None:
    """Every table of at most three records in four cells, against models off the grid."""
    dice = np.random.default_rng(1)
    worst = {"add": 0, "replace": 0}
    for _ in range(20):
        expected = dice.uniform(0, 3, (2, 2))
        for counts in product(range(3), repeat=4):
            table = np.array(counts).reshape(2, 2)
            here = score(table, expected)
            for one in range(4):
                more = table.copy()
                more.flat[one] += 1
                worst["add"] = max(worst["add"], abs(score(more, expected) - here))
                for other in range(4):
                    moved = more.copy()
                    moved.flat[other] -= 1
                    worst["replace"] = max(worst["replace"], abs(score(moved, expected) - here))
    assert worst == {"add": FINENESS, "replace": 2 * FINENESS}


def test_a_score_is_exact_whatever_the_floats_are() -> None:
    expected = np.full((3, 3), 1e15 / 9)
    steps = [round(float(each) * FINENESS) for each in expected.flat]
    assert score(np.zeros((3, 3), np.int64), expected) == sum(steps)


def test_the_first_edge_has_the_law_of_the_exponential_mechanism() -> None:
    """Chi-square at 1e-6 over the trees of three columns, in the order of their edges."""
    scores, draws = [0, 40, 96], 1500
    mechanism = Exponential(epsilon=1, sensitivity=FINENESS, candidates=3)
    bits = SeededBits(7)
    seen = [choose_tree(scores, 3, (), mechanism, bits) for _ in range(draws)]
    weights = np.exp(np.array(scores) / (2 * FINENESS))
    expected = {}
    pairs = all_pairs(3)
    for first, second in product(range(3), repeat=2):
        if first != second:
            others = sum(weights[each] for each in range(3) if each != first)
            expected[pairs[first], pairs[second]] = weights[first] / weights.sum() * weights[second] / others
    statistic = sum(
        (seen.count(tree) - draws * chance) ** 2 / (draws * chance) for tree, chance in expected.items()
    )
    assert statistic < 36.9  # chi-square with 5 degrees of freedom, 1 - 6e-7
    swapped = sum(
        (seen.count(tree) - draws * chance) ** 2 / (draws * chance)
        for tree, chance in zip(expected, reversed(list(expected.values())), strict=True)
    )
    assert swapped > 100  # another law is told apart


def test_trees_join_all_columns_and_keep_what_is_given() -> None:
    mechanism = Exponential(epsilon=1, sensitivity=FINENESS, candidates=15)
    for seed in range(20):
        tree = choose_tree(list(range(15)), 6, [(2, 5)], mechanism, SeededBits(seed))
        assert len(tree) == 5
        assert tree[0] == (2, 5)
        order = from_root(tree, 6)
        assert sorted(column for column, _ in order) == list(range(6))
        assert [parent for _, parent in order].count(None) == 1
        assert {frozenset(pair) for pair in order if None not in pair} == set(map(frozenset, tree))
