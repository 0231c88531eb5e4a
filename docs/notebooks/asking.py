# %% [markdown]
# # Asking in Python and SQL
#
# Questions as analysts ask them, about made-up people: by month, with a gap between two groups, and as a
# table that is ready to publish. Nobody in it exists.

# %%
from datetime import date

import numpy as np
import pyarrow as pa

import sourdine as sd
from sourdine import statistics as st

rng = np.random.default_rng(2)
size = 8000
sex = rng.choice(["f", "m"], size)
rows = pa.table(
    {
        "age": rng.integers(18, 68, size),
        "sex": sex,
        "region": rng.choice(["north", "south", "west"], size, p=[0.5, 0.3, 0.2]),
        "pay": np.clip(rng.normal(np.where(sex == "m", 41_000, 38_000), 9_000), 0, 100_000).round(),
        "hired": np.datetime64("2023-01-01", "D") + rng.integers(0, 365, size),
    }
)

# %% [markdown]
# ## Declare
# Bounds, keys and days come from you, never from the data.

# %%
people = sd.Table(
    rows,
    unit="person",
    size=size,
    columns={
        "age": {"type": "integer", "lower": 18, "upper": 67},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "region": {"type": "category", "keys": ["north", "south", "west"]},
        "pay": {"type": "real", "lower": 0.0, "upper": 100_000.0},
        "hired": {"type": "date", "first": date(2023, 1, 1), "last": date(2023, 12, 31)},
    },
)
c = people.c
c.pay

# %% [markdown]
# ## Ask
# Step by step in Python, or in SQL. Both are the same queries, and nothing is read yet.

# %%
hires = people.ask("hires").by(c.hired.month()).get(st.Count())
gap = people.ask("gap").by(c.region).get(c.pay.mean().difference(c.sex, "m", "f"))
grown = people.ask("grown").where((c.age >= 30) & ~(c.region == "west")).get((c.pay / 12).mean())
cells = people.sql("SELECT region, sex, COUNT(*) FROM people GROUP BY region, sex", name="cells")
plan = people.plan([hires, gap, grown, cells], epsilon=1)
print(plan)

# %% [markdown]
# ## Pay and read
# The difference of two means costs nothing beside them, and its interval allows for the noise in both.

# %%
ledger = sd.Ledger.create("people.ledger", epsilon=1)
release = people.release(plan, ledger, purpose="a notebook")
release["gap", "mean of pay, m less f"]

# %%
release.chart("hires")

# %% [markdown]
# ## Publish
# Counts by two columns are a crosstab, with sums that add up. It goes into a workbook, too: `to_xlsx`.

# %%
table = release.crosstab("region", "sex", query="cells")
print(table.to_markdown())

# %%
table
