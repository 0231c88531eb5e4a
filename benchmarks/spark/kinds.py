"""The kinds of releases that differ in what Spark must do, and the same questions without privacy."""

from dataclasses import dataclass

from benchmarks.growth.cases import DECILES, Case

_LEVELS = ", ".join(map(str, DECILES))
_PAIRS = "SELECT person, k, count(*) AS n, sum(x) AS x FROM t GROUP BY person, k"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A release, the query without privacy beside it, and how many shuffles it may have (why: README)."""

    words: str
    task: str
    plain: str
    shuffles: int

    def case(self, rows: int) -> Case:
        """The table, which other benchmarks have as well."""
        return Case(task=self.task, rows=rows, keys=100, engine="spark")


KINDS = {
    "declared": Kind(
        words="count and mean by 100 declared keys",
        task="declared",
        plain="SELECT k, count(*), avg(x) FROM t GROUP BY k",
        shuffles=1,
    ),
    "deciles": Kind(
        words="nine deciles by 100 declared keys",
        task="deciles",
        plain=f"SELECT k, percentile_approx(x, array({_LEVELS})) FROM t GROUP BY k",
        shuffles=1,
    ),
    "private": Kind(
        words="count and mean by 100 keys that nobody declared",
        task="private",
        plain="SELECT k, count(*), avg(x) FROM t GROUP BY k HAVING count(*) >= 2",
        shuffles=3,
    ),
    "people": Kind(
        words="count and mean by 100 declared keys, 100 rows a person",
        task="people",
        plain=f"SELECT k, sum(n), sum(x) / sum(n) FROM ({_PAIRS}) GROUP BY k",
        shuffles=3,
    ),
}
