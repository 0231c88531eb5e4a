# %% [markdown]
# # Collecting words with RAPPOR
#
# Which pages do people start from? Each device answers through noise of its own, so nobody needs to be
# trusted with the answers, and the collector still finds the frequent words. Here are some 55,000 made-up
# devices.

# %%
import numpy as np

from sourdine.core.display import Figure
from sourdine.local.rappor import Rappor
from sourdine.local.rappor.decode import Candidates, Evidence, decode_by_least_squares
from sourdine.report.charts.base import Axis, Series, draw_lines
from sourdine.testing import SeededBits

# %% [markdown]
# ## What a device promises
# One report costs `epsilon_one`. A device that is asked every day adds noise to the same permanent answer, so
# that all reports together never cost more than `epsilon_infinity`.

# %%
oracle = Rappor(bits=64, hashes=2, cohorts=8, f=0.25, p=0.35, q=0.65)
print(f"one report {oracle.epsilon_one:.2f}, all of them {oracle.epsilon_infinity:.2f}")

# %%
forgetful = Rappor(bits=64, hashes=2, cohorts=8, f=0, p=0.35, q=0.65)
days = (1, 2, 4, 8, 15, 30)
rows = [{"days": d, "epsilon": oracle.epsilon_after(d), "who": "with a permanent answer"} for d in days]
rows += [{"days": d, "epsilon": forgetful.epsilon_after(d), "who": "fresh noise only"} for d in days]
Figure(
    title="Fresh noise wears off; a permanent answer has a limit",
    chart=draw_lines(
        rows,
        x=Axis(field="days", title="reports on the same word"),
        y=Axis(field="epsilon", title="epsilon of all reports together", log=True),
        series=Series(field="who", names=("with a permanent answer", "fresh noise only")),
    ),
)

# %% [markdown]
# ## Collect
# Twelve pages are visited, and eight more are on the list of candidates though nobody has them.

# %%
words = [f"site {i:02}" for i in range(20)]
visitors = (50_000 * 0.55 * 0.45 ** np.arange(12) + 400).astype(int)
truth = np.repeat(np.arange(12), visitors)
reports = oracle.encode(words, truth, bits=SeededBits(1))
found = decode_by_least_squares(Evidence.of(oracle, oracle.tally(reports)), Candidates.of(oracle, words))
print(f"{len(truth):,} reports; found: {', '.join(found.discoveries)}")

# %%
order = [found.words.index(word) for word in words]
rows = [{"site": i, "people": float(n), "who": "truth"} for i, n in enumerate([*visitors, *[0] * 8])]
rows += [{"site": i, "people": float(found.counts[at]), "who": "estimate"} for i, at in enumerate(order)]
Figure(
    title="The head of the list is found, the tail drowns in the noise",
    chart=draw_lines(
        rows,
        x=Axis(field="site", title="site"),
        y=Axis(field="people", title="people", form=",.0f"),
        series=Series(field="who", names=("truth", "estimate")),
    ),
)

# %% [markdown]
# That is the price of trusting nobody: about as many people must have a word as the noise is large.
# `sourdine local rappor simulate` shows its size before anybody is asked.
#
# ## Next
# Choosing parameters, files and decoders: [RAPPOR](../tutorials/rappor.md). With Google's files: [how
# to](../how_to/rappor_with_googles_files.md). Where the possible answers are few and known, an oracle is
# better: [collecting answers](../tutorials/local.md).
