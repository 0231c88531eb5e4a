# %% [markdown]
# # Anonymity, and how it fails
#
# Names are gone, so the table is anonymous? Here it is made 5-anonymous by the book, and attacked. Then the
# attack is stopped, and the next one gets through. Everybody is made up.

# %%
import pyarrow as pa

from sourdine.anonymity import Demand, generalise, measure, measure_records
from sourdine.audit.attacks import ATTACKS
from sourdine.core.display import Figure
from sourdine.report.charts.anonymity import draw_hiding
from sourdine.report.pages.training_audit import draw_attack
from sourdine.tables.mock import draw_register
from sourdine.testing import SeededBits

# %% [markdown]
# ## A table without names

# %%
people = draw_register(2000)
columns = {"quasi": ["age", "sex", "region"], "sensitive": ["diagnosis"]}
table = pa.table({name: getattr(people, name) for name in ("age", "sex", "region", "diagnosis")})
raw = measure(table, **columns)
print(f"smallest class {raw.k}; {raw.unique:,} of 2,000 people are alone with their age, sex and region")

# %% [markdown]
# ## Made 5-anonymous
# Ages become bands, and at most 5 % of the people are left out, until everybody shares age, sex and region
# with four others at least.

# %%
made = generalise(table, Demand(k=5), suppress=0.05, **columns)
after = measure_records(made.records)
print(f"smallest class {after.k}; {made.suppressed} people left out; {made.loss.ncp:.0%} of the detail lost")
print("for example:", *next(iter(made.rows())))

# %%
Figure(title="Among how many others people hide", chart=draw_hiding({"raw": raw, "5-anonymous": after}))

# %% [markdown]
# ## And yet
# A class in which all have the same illness reveals it to whoever knows that you are in the class:

# %%
homogeneity = ATTACKS["homogeneity"].run(SeededBits(1))
print(homogeneity.finding)
print(homogeneity.lesson)

# %%
Figure(title=homogeneity.charts[0].finding, chart=draw_attack(homogeneity.charts[0]))

# %% [markdown]
# Demanding diverse classes stops that, and the next attack begins where it ends. Each remedy is about one
# attack, and none of them adds up over two tables:

# %%
for name in ("homogeneity", "skewness"):
    found = ATTACKS[name].run(SeededBits(1))
    before, then = found.unprotected, found.protected
    print(f"{name}: {before.target}, right in {before.success:.1%}; {then.target}, in {then.success:.1%}")

# %% [markdown]
# ## What holds
# Noise that is paid for makes no assumption about what others know. Rounded counts fall to the same attack
# that counts with noise withstand, and what any attack can achieve is bounded by a theorem:

# %%
reconstruction = ATTACKS["reconstruction"].run(SeededBits(1))
print(reconstruction.finding)

# %%
Figure(title=reconstruction.charts[0].finding, chart=draw_attack(reconstruction.charts[0]))

# %% [markdown]
# ## Next
# The measures and their formulas: [anonymity](../anonymity.md). All ten attacks: [seeing attacks work,
# and fail](../tutorials/attacks.md). What to do instead: [a first release](first_release.py).
