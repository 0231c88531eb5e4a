# %% [markdown]
# # Training on sensitive data
#
# A model that learnt from people can repeat what it saw. Trained with differential privacy it cannot, by
# more than epsilon allows. It takes torch, and one call.

# %%
from dataclasses import replace

import torch
from torch import nn

import sourdine as sd
from sourdine.core.display import Figure
from sourdine.report.charts.base import Axis, Series, draw_lines

# %% [markdown]
# Made-up patients: whether they fall ill depends on ten measurements. The last thousand serve as public
# data.

# %%
numbers = torch.Generator().manual_seed(1)
inputs = torch.randn(6000, 10, generator=numbers)
ill = (inputs[:, 0] + inputs[:, 1] ** 2 + 0.5 * torch.randn(6000, generator=numbers) > 1).long()
private, public = (inputs[:5000], ill[:5000]), (inputs[5000:], ill[5000:])
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 2))

# %% [markdown]
# ## Plan

# %%
plan = sd.learning.TrainingPlan(epsilon=3, delta=1e-5, epochs=8, batch_size=500)
for name, words in sd.learning.plan(plan, size=5000).words().items():
    print(f"{name:<10} {words}")

# %% [markdown]
# ## Train
# A copy of the model is trained, and accuracy is reported on public data only: nobody paid for the loss on
# the training data. The ledger is charged before the first example is read.

# %%
ledger = sd.Ledger.create("patients.ledger", epsilon=3, delta=1e-5, composition="basic", unit="patient")
trained = sd.learning.fit(model, private, plan, public=public, ledger=ledger)
print(f"epsilon {trained.epsilon.upper:.3f}, accuracy {trained.accuracy:.1%}")

# %% [markdown]
# ## What does privacy cost?
# The same run for other epsilons. On private data every one of these would cost its own epsilon, and
# choosing the best of them would have to be paid as well. Try on public data that look like yours.

# %%
rows = []
for epsilon in (0.1, 1, 10):
    once = sd.learning.fit(model, private, replace(plan, epsilon=epsilon), public=public)
    rows.append({"epsilon": epsilon, "accuracy": once.accuracy, "run": "private"})
Figure(
    title="Accuracy against epsilon, 5,000 patients",
    chart=draw_lines(
        rows,
        x=Axis(field="epsilon", title="epsilon at delta = 1e-5", log=True),
        y=Axis(field="accuracy", title="accuracy on public data", form=".0%"),
        series=Series(field="run", names=("private",)),
    ),
)

# %% [markdown]
# ## Hand it over
# A card says what the model is, what it cost and what that rests on; its certificate is checked against the
# ledger.

# %%
card = sd.learning.card_of(trained, ledger)
print(card.text()[:600], "...")
print(card.certificate.verify(ledger))
ledger.close()

# %% [markdown]
# ## Next
# People with many examples, memory, sweeps, your own loop: [training in depth](../tutorials/learning.md).
# Images from files: [digits](../tutorials/mnist.md). After a kill: [resume a
# training](../how_to/resume_a_training.md).
