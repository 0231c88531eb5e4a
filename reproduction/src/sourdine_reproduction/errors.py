"""Errors in the source documents, and what each does to the guarantee."""

from dataclasses import dataclass
from enum import StrEnum

from sourdine.report.view import Section, TextTable
from sourdine_reproduction.registry import Result, Settings, experiment


class Effect(StrEnum):
    """What an error does to what is promised."""

    BREAKS = "no guarantee"
    WEAKENS = "weaker than told"
    WASTES = "holds, with more noise than needed"
    MISLEADS = "holds, but the accuracy told is wrong"
    READS = "a slip in the text"


@dataclass(frozen=True, kw_only=True)
class Error:
    """One error: where it stands, what it says, what is right, and what follows."""

    place: str
    says: str
    right: str
    effect: Effect


ERRORS = (
    Error(
        place="quantiles, code",
        says="The support of the answer goes from the least to the greatest value of the data.",
        right="Bounds are declared: an extreme value must not show through.",
        effect=Effect.BREAKS,
    ),
    Error(
        place="quantiles, code",
        says="Laplace noise with half of its scale.",
        right="2/ε on the threshold and 4/ε on the queries, or 2/ε on both for counts below cut points.",
        effect=Effect.BREAKS,
    ),
    Error(
        place="quantiles, code",
        says="The range of the histogram is the maximum of the data.",
        right="The declared upper bound.",
        effect=Effect.BREAKS,
    ),
    Error(
        place="quantiles, code",
        says="The score of inverse sensitivity has a sign and no absolute value; ranks differ by up to 8 "
        "between the truth and the target.",
        right="The number of values to replace, on both sides alike, and one definition of the rank.",
        effect=Effect.MISLEADS,
    ),
    Error(
        place="quantiles, report",
        says="Cut points start at 0, the index counts from 0 while they count from 1, and -1 is returned if "
        "nothing crosses.",
        right="a + i(b − a)/k, and b if nothing crosses.",
        effect=Effect.READS,
    ),
    Error(
        place="quantiles, report",
        says="Noise of scale 4/ε on counts below rising cut points.",
        right="They all move the same way when a value is replaced, so 2/ε is enough.",
        effect=Effect.WASTES,
    ),
    Error(
        place="quantiles, theorems 2.4.1.3 and after",
        says="Bounds with ε where each of nine deciles has ε/9; 905 values are said to be enough.",
        right="With ε/9 about 10,800 values are needed.",
        effect=Effect.MISLEADS,
    ),
    Error(
        place="quantiles, theorems 3.3.1.2 and 3.3.2.1",
        says="Bounds on the distance to the law's quantile that leave out the chance of the sample.",
        right="Both errors add up: at a million values the bound says 2.8e-7, and 19 of 60 runs miss it.",
        effect=Effect.MISLEADS,
    ),
    Error(
        place="foundations",
        says="(ε, δ)-privacy means that the loss is at most ε with probability 1 − δ.",
        right="Such a loss gives (ε, δ), but not the other way round.",
        effect=Effect.READS,
    ),
    Error(
        place="foundations",
        says="√(2 ln(1.25/δ)) Δ/ε as the variance of Gaussian noise, for every ε.",
        right="It is the standard deviation, and only for ε below 1; the exact condition holds for all.",
        effect=Effect.BREAKS,
    ),
    Error(
        place="foundations",
        says="The estimator of k-ary response with a wrong numerator; its error at one share only.",
        right="((e^ε + K − 1)·mean − 1)/(e^ε − 1), with a variance that depends on the share.",
        effect=Effect.MISLEADS,
    ),
    Error(
        place="foundations",
        says="Answers about disjoint parts cost the largest ε.",
        right="If people come or go. One who is replaced may leave a part and enter another: two ε.",
        effect=Effect.WEAKENS,
    ),
    Error(
        place="foundations",
        says="K people together: δ grows to K e^(Kε) δ.",
        right="δ (e^(Kε) − 1)/(e^ε − 1).",
        effect=Effect.WASTES,
    ),
    Error(
        place="foundations",
        says="A Gaussian tail and the score of an example with slips; a sample size for statistical queries.",
        right="σ√(2 ln(K/β)); a minus sign; the size only makes the standard error about τ.",
        effect=Effect.MISLEADS,
    ),
    Error(
        place="thesis, Rényi divergence",
        says="Its exponent, a binomial coefficient and two conditions of convergence are missing or swapped.",
        right="With noise σC on a sensitivity of C the curve is α/(2σ²); sums are taken in logarithms.",
        effect=Effect.READS,
    ),
    Error(
        place="thesis, training",
        says="Batches are cut from shuffled epochs and accounted for as Poisson samples.",
        right="Either draw Poisson samples, or pay what shuffled epochs cost, which is far more.",
        effect=Effect.BREAKS,
    ),
    Error(
        place="thesis, budget tool",
        says="ε = 1.17 by a conversion of 2017 for a run of 15 epochs.",
        right="ε = 0.612 is certified for the same run with Poisson batches.",
        effect=Effect.WASTES,
    ),
    Error(
        place="thesis, flowers",
        says="Two rows of the table state 6.2 and 5.8.",
        right="7.33 and 6.81 by its own method.",
        effect=Effect.WEAKENS,
    ),
    Error(
        place="thesis, flowers",
        says="Augmented images count as more people.",
        right="Copies belong to the person of the original, whom all of them protect together.",
        effect=Effect.WEAKENS,
    ),
    Error(
        place="thesis, memory",
        says="Memory grows with BS²/F.",
        right="With BS/F²: batch times size of an image reduced F times in each direction.",
        effect=Effect.READS,
    ),
    Error(
        place="thesis, RAPPOR and densities",
        says="p* conditioned on the wrong bit; a density without its normaliser; a loose total variation.",
        right="P(S=1 | B=0); (2λ)^−d exp(−|v|₁/λ); at most (e^ε − 1)/(e^ε + 1).",
        effect=Effect.READS,
    ),
    Error(
        place="cleaner",
        says="Ranges and categories are taken from the data, and gaps are filled with their medians.",
        right="They are declared; what is missing is noised like the rest.",
        effect=Effect.BREAKS,
    ),
    Error(
        place="cleaner",
        says="A staircase of ε is drawn again until it lies inside its range.",
        right="Its normaliser depends on the value: up to 1.48 ε. Ours is calibrated to its worst case.",
        effect=Effect.WEAKENS,
    ),
    Error(
        place="cleaner",
        says="The second step of the staircase has the exponent of the first.",
        right="Exponent j + 1.",
        effect=Effect.READS,
    ),
    Error(
        place="cleaner",
        says="Accuracy 0.604 against labels that were noised too.",
        right="Scored on true labels as well.",
        effect=Effect.MISLEADS,
    ),
)


@experiment("errors", "Errors in the source documents, and what each does to the guarantee")
def errors(settings: Settings) -> Result:
    """The list; what is right is checked by the other experiments and by the tests."""
    counts = {effect: sum(each.effect is effect for each in ERRORS) for effect in Effect}
    table = TextTable(
        name="errors",
        title="Errors found, in the order of the documents",
        columns=("where", "what it says", "what is right", "the guarantee"),
        rows=tuple((each.place, each.says, each.right, str(each.effect)) for each in ERRORS),
    )
    return Result(
        name="errors",
        title="Errors in the source documents",
        lead=(
            f"{len(ERRORS)} were found: {counts[Effect.BREAKS]} leave no guarantee, "
            f"{counts[Effect.WEAKENS]} a weaker one than is stated. None of them is repeated here."
        ),
        verdicts=(),
        sections=(Section(title="All of them", tables=(table,)),),
    )
