# %% [markdown]
# # The budget of a training run
#
# Private training (DP-SGD) clips the gradient of every example and adds noise to their sum, thousands of
# times. What all steps together tell about one example can be computed before the first of them, from five
# numbers.

# %%
from dataclasses import replace

from sourdine.accounting import Sampler, Training, cost_of_training, dpsgd_epsilon, noise_for
from sourdine.core.display import Figure
from sourdine.report.charts.base import Axis, Series, draw_lines

run = Training(size=60_000, batch_size=64, noise_multiplier=1.0, epochs=15)
cost = cost_of_training(run, delta=1e-5)
print(f"{cost.steps:,} steps cost epsilon {cost.epsilon.upper:.4f} (at least {cost.epsilon.lower:.4f})")
print(f"A simpler accountant says {cost.source.epsilon:.2f}: true, but twice as much as needed.")

# %% [markdown]
# ## Noise
# Below a noise of about 0.6 clipping norms epsilon rises steeply; above 1 it falls slowly.

# %%
rate = run.sampling_rate
rows = []
for noise in (0.5, 0.6, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0):
    found = dpsgd_epsilon(noise_multiplier=noise, sampling_rate=rate, steps=cost.steps, delta=1e-5)
    rows.append({"noise": noise, "epsilon": found.upper, "run": "15 epochs in batches of 64"})
Figure(
    title="Epsilon of the run against its noise",
    chart=draw_lines(
        rows,
        x=Axis(field="noise", title="noise, clipping norms"),
        y=Axis(field="epsilon", title="epsilon at delta = 1e-5", log=True),
        series=Series(field="run", names=("15 epochs in batches of 64",)),
        mark=1.0,
    ),
)

# %% [markdown]
# ## Batches
# Larger batches drown the noise better, and cost more. At the same epsilon, what counts for learning is the
# noise beside the batch: the smaller this ratio, the clearer the signal.

# %%
for batch in (64, 256, 1024):
    steps = 15 * 60_000 // batch
    noise = noise_for(epsilon=1, delta=1e-5, sampling_rate=batch / 60_000, steps=steps)
    print(f"batch {batch:>5}: noise {noise:.3f}, in the mean gradient {noise / batch:.5f} clipping norms")

# %% [markdown]
# ## How batches are drawn
# The cost above is for batches that are drawn afresh, each example by a coin of its own. Shuffling and
# cutting, as most loops do, is something else, and what can be proven of it is far worse:

# %%
for sampler in Sampler:
    found = cost_of_training(replace(run, sampler=sampler), delta=1e-5)
    print(f"{sampler.value:<8} {found.epsilon.upper:.4f}")

# %% [markdown]
# ## Next
# On the command line, with every option: [planning the budget](../tutorials/budget.md). Then
# [train](training.py).
