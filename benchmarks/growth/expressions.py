"""Questions with dates and expressions, in one SQL text for the engine and for us."""

from datetime import date, datetime
from typing import Any

REGIONS = ("north", "south", "east", "west")
_BY_REGION = "SELECT region, COUNT(*), {} FROM people{} GROUP BY region"
_BY_PERIOD = "SELECT DATE_TRUNC('{0}', seen), COUNT(*) FROM people GROUP BY DATE_TRUNC('{0}', seen)"
_MARCH = "seen >= TIMESTAMP '2024-03-01 00:00:00' AND seen < TIMESTAMP '2024-04-01 00:00:00'"
_CASE = "CASE WHEN age >= 65 THEN 0 WHEN age < 30 THEN hours ELSE hours + 1 END"
QUESTIONS = {
    "a column as it stands": _BY_REGION.format("AVG(pay)", ""),
    "days": _BY_PERIOD.format("day"),
    "weeks": _BY_PERIOD.format("week"),
    "months": _BY_PERIOD.format("month"),
    "a range of times": f"SELECT region, COUNT(*) FROM people WHERE {_MARCH} GROUP BY region",
    "until - start": _BY_REGION.format("AVG(until - start)", ""),
    "CASE": _BY_REGION.format(f"AVG({_CASE})", ""),
    "OR": _BY_REGION.format("AVG(pay)", " WHERE age < 30 OR pay > 50000"),
    "hours * visits": _BY_REGION.format("AVG(hours * visits)", ""),
    "pay / visits": _BY_REGION.format("AVG(pay / visits)", ""),
    "pay / 12": _BY_REGION.format("AVG(pay / 12)", ""),
}
COLUMNS: dict[str, Any] = {
    "region": {"type": "category", "keys": list(REGIONS)},
    "age": {"type": "integer", "lower": 18, "upper": 90},
    "pay": {"type": "real", "lower": 0.0, "upper": 200_000.0, "granularity": 0.01},
    "hours": {"type": "real", "lower": 0.0, "upper": 60.0, "granularity": 0.01},
    "visits": {"type": "integer", "lower": 1, "upper": 20},
    "seen": {"type": "datetime", "first": datetime(2024, 1, 1), "last": datetime(2024, 12, 31, 23, 59, 59)},
    "start": {"type": "date", "first": date(2023, 1, 1), "last": date(2023, 12, 31)},
    "until": {"type": "date", "first": date(2023, 1, 1), "last": date(2024, 12, 31)},
}
RECORDS = {
    "region": f"{list(REGIONS)}[1 + CAST(hash(i, 1) % {len(REGIONS)} AS BIGINT)]",
    "age": "CAST(18 + hash(i, 2) % 73 AS INTEGER)",
    "pay": "(hash(i, 3) % 20000001) / 100.0",
    "hours": "(hash(i, 4) % 6001) / 100.0",
    "visits": "CAST(1 + hash(i, 5) % 20 AS INTEGER)",
    "seen": "TIMESTAMP '2024-01-01' + INTERVAL 1 SECOND * CAST(hash(i, 6) % (366 * 86400) AS INTEGER)",
    "start": "DATE '2023-01-01' + CAST(hash(i, 7) % 365 AS INTEGER)",
    "until": "DATE '2023-01-01' + CAST(hash(i, 7) % 365 + hash(i, 8) % 300 AS INTEGER)",
}
"""Made-up records, as SQL of the number of a row."""
