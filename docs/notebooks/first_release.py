# %% [markdown]
# # A first release
#
# You hold a table about people and want to publish statistics of it. Here is the whole way, from a table to
# a release that says what it cost. The register is made up: nobody in it exists.

# %%
from pathlib import Path

import sourdine as sd
from sourdine.tables.mock import draw_register

draw_register(50_000).write(Path("people.csv"))

# %% [markdown]
# ## Declare
# What the columns mean comes from you, never from the table: a bound that was read off the data tells about
# the data.

# %%
people = sd.Table(
    "people.csv",
    unit="person",
    size=50_000,
    columns={
        "age": {"type": "integer", "lower": 18, "upper": 99},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "region": {"type": "category", "keys": ["north", "east", "south", "west", "centre"]},
        "salary": {"type": "real", "lower": 0.0, "upper": 120_000.0, "granularity": 10.0},
    },
)

# %% [markdown]
# ## Plan
# Two questions, one epsilon for both. The plan says how far off every answer will be; no record was read
# for it.

# %%
plan = people.plan(
    {"name": "people", "ask": ["count"], "by": ["region", "sex"]},
    {
        "name": "earnings",
        "ask": [{"quantiles": "salary", "levels": [k / 10 for k in range(1, 10)]}],
        "weight": 2,
    },
    epsilon=1,
)
print(plan)

# %% [markdown]
# ## Pay, then release
# A ledger holds the budget of a data set, for everything that is ever published about it. The charge is on
# the disk before the first record is read.

# %%
ledger = sd.Ledger.create("people.ledger", epsilon=1)
release = people.release(plan, ledger, purpose="yearly tables")
release

# %% [markdown]
# Every answer has an interval, which tells how far the noise reaches in 95 of 100 cases. Here it is hardly
# visible:

# %%
release.chart("people")

# %%
release.chart("earnings")

# %% [markdown]
# ## What is left
# Nothing: the ledger refuses whatever else is asked. That is the promise, that all answers *together* tell
# at most epsilon = 1 about anybody.

# %%
try:
    people.release(plan, ledger)
except sd.BudgetExceeded as refused:
    print(refused)

# %% [markdown]
# The certificate goes with the release. Whoever has the ledger can check it: an empty list means that
# nothing is wrong.

# %%
certificate = release.certificate(ledger)
print(certificate.verify(ledger))
ledger.close()

# %% [markdown]
# ## Next
# The same from a file and the command line: [declare a table](../how_to/declare_a_table.md). Everything
# that can be asked: [publishing tables](../tutorials/tables.md). What epsilon = 1 means: [choosing
# epsilon](choosing_epsilon.py).
