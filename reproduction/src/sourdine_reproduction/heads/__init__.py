"""Heads on frozen features, as the source trained them on flowers: its table, its curves, and ours beside."""

from importlib.util import find_spec

from sourdine.core.lazy import install_line
from sourdine.report.view import Section
from sourdine_reproduction.heads import by_epoch, by_epsilon, flowers, memory, table
from sourdine_reproduction.heads.setting import read_examples
from sourdine_reproduction.registry import Experiment, ExperimentPart, Result, Settings, experiment


@experiment("learning", "Heads on frozen features: the flowers table, accuracy and memory curves")
def learning(settings: Settings) -> Result:
    """The published table with its epsilons as they are, and one like it on features at hand."""
    parts = [flowers.reproduce(settings)]
    if find_spec("torch") is None:
        parts.append(
            ExperimentPart(
                table.untested(),
                Section(
                    title="What is learnt",
                    paragraphs=(
                        f"Nothing was trained: it needs torch. Install it with: {install_line('learn')}",
                    ),
                ),
            )
        )
    else:
        from sourdine.learning.devices.placement import one_thread

        examples = read_examples(settings)
        with one_thread():
            parts += [each.reproduce(examples, settings) for each in (table, by_epsilon, by_epoch)]
        parts.append(memory.reproduce(settings))
    return Result.of(
        *parts,
        name="learning",
        title="Heads on frozen features, with and without privacy",
        lead=(
            "A thesis trained a perceptron on what a frozen VGG16 saw in 102 kinds of flowers, and printed "
            "thirteen runs with their ε. Here its ε are computed again, and the same settings train a "
            "perceptron on frozen features of other images, beside heads that fare better."
        ),
    )


__all__ = ["Experiment", "learning"]
