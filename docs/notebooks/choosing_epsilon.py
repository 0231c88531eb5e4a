# %% [markdown]
# # Choosing epsilon
#
# Epsilon bounds what a release may reveal about one person. Choose it from both ends: what it allows an
# attacker, and what error it leaves you with. Both are known before anything is published.

# %%
from sourdine.accounting.explain import explain_guarantee, posterior_bounds, sentences
from sourdine.core.display import Figure
from sourdine.mechanisms import Geometric
from sourdine.report.charts.base import Axis, Series, draw_lines
from sourdine.report.charts.beliefs import draw_family

# %% [markdown]
# ## What it allows an attacker
# Whatever somebody believed about you, they believe it a little more or less afterwards, and epsilon says how
# much at most. At epsilon = 1:

# %%
for sentence in sentences(explain_guarantee(1.0)):
    print("-", sentence)

# %%
Figure(
    title="Belief before and after an answer, at most and at least",
    chart=draw_family([0.1, 0.5, 1, 3]),
)

# %% [markdown]
# Somebody barely suspected stays barely suspected. From a belief of one in a hundred:

# %%
for epsilon in (0.1, 0.5, 1, 3, 10):
    print(f"epsilon {epsilon:>4}: at most {posterior_bounds(0.01, epsilon).upper:.1%}")

# %% [markdown]
# At epsilon = 10 such a bound says nothing any more. Above about 5 nobody should speak of strong
# protection.
#
# ## What it leaves you with
# A count with geometric noise of scale 1/epsilon is off by this much at most, in 95 of 100 cases:

# %%
epsilons = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
rows = [
    {"epsilon": epsilon, "error": Geometric(scale=share / epsilon).error(0.95), "what": what}
    for share, what in ((1, "one count"), (20, "twenty counts"))
    for epsilon in epsilons
]
Figure(
    title="Twenty questions share what one would have",
    chart=draw_lines(
        rows,
        x=Axis(field="epsilon", title="epsilon, all answers together", log=True),
        y=Axis(field="error", title="error, people", log=True, form=",.0f"),
        series=Series(field="what", names=("one count", "twenty counts")),
        mark=1.0,
    ),
)

# %% [markdown]
# Noise does not grow with the data. Among 50,000 people an error of 60 is next to nothing; in a village of
# 200 it is everything. So ask for the error that you can live with, take the epsilon which that needs, and
# see whether its sentences are ones that you would say to the people in the table. If they are not, ask
# less, or more coarsely.

# %%
wanted = 50  # people, for each of twenty counts
fits = next(e for e in epsilons if Geometric(scale=20 / e).error(0.95) <= wanted)
print(f"epsilon {fits} is enough for twenty counts within {wanted} people")

# %% [markdown]
# ## Next
# Plans do this for whole releases: [ask for an accuracy](../how_to/ask_for_an_accuracy.md). What a delta
# adds, and how to explain all this to others: [what epsilon means](../tutorials/what_epsilon_means.md),
# [choose delta](../how_to/choose_delta.md).
