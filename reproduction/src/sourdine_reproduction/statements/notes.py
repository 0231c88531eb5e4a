"""The lecture notes: definitions, mechanisms and their errors, composition, the local model."""

from functools import partial

from sourdine_reproduction.statements.base import PublishedStatement, SourceDocument

NOTES = SourceDocument(
    name="notes",
    title="Lecture notes",
    document="Differential Privacy. Handwritten lecture notes in French, without an author or a date.",
    places="Pages, as they are numbered by hand. The text at hand was read off the handwriting, and may "
    "misread it.",
)
_at = partial(PublishedStatement, source=NOTES)

STATEMENTS = (
    _at(
        name="notes.loss",
        place="p. 3",
        sentence="(ε, δ)-DP assure que ∀ θ ∈ O, ‖D − D'‖ ≤ 1, P(L(θ) ≤ ε) ≥ 1 − δ.",
        english="(ε, δ)-DP makes sure that the loss is at most ε with probability 1 − δ.",
        claim="(ε, δ) means that the loss stays below ε with probability 1 − δ",
        published="P(L ≤ ε) ≥ 1 − δ",
    ),
    _at(
        name="notes.sum",
        place="p. 5",
        sentence="A(D) = (A₁(D), …, A_K(D)) est ε-DP avec ε = Σ ε_k, δ = Σ δ_k…",
        english="Several algorithms together are DP with the sums of their ε and δ.",
        claim="what several mechanisms cost together",
        published="Σ ε_k; so 10 for 100 of ε = 0.1 (by its formula)",
    ),
    _at(
        name="notes.parallel",
        place="p. 5",
        sentence="Si chacune des entrées est (ε, δ)-DP, alors la publication du tableau tout entier est (ε, "
        "δ)-DP.",
        english="If each entry is (ε, δ)-DP, so is the publication of the whole table.",
        claim="a 2 × 2 table of private counts costs what one of them does",
        published="(ε, δ)",
    ),
    _at(
        name="notes.group",
        place="p. 6",
        sentence="Tout algorithme (ε, δ)-DP A est (Kε, K e^{Kε} δ)-DP pour les groupes de taille K.",
        english="Every (ε, δ)-DP algorithm is (Kε, K e^(Kε) δ)-DP for groups of K.",
        claim="what K people together are promised",
        published="K e^(Kε) δ; so 0.0074 for 50 people at (0.1, 1e-6) (by its formula)",
    ),
    _at(
        name="notes.laplace.mean",
        place="p. 10",
        sentence="E[‖A_lap(D, f, ε) − f(D)‖₁] ≤ K Δ₁(f)/ε.",
        english="The mean of the summed errors of K answers is at most K Δ/ε.",
        claim="the mean error of Laplace noise",
        published="at most Δ/ε for each number",
    ),
    _at(
        name="notes.laplace.largest",
        place="p. 10",
        sentence="∀ β ∈ (0, 1], P(‖A_lap(D, f, ε) − f(D)‖_∞ ≤ log(K/β) Δ₁(f)/ε) ≥ 1 − β.",
        english="The largest of K errors is at most log(K/β) Δ/ε with probability 1 − β.",
        claim="the largest of K Laplace errors",
        published="log(K/β) Δ/ε",
    ),
    _at(
        name="notes.gaussian",
        place="p. 10 and 11",
        sentence="Y_i ~ N(0, σ²) où σ² = √(2 log(1.25/δ)) · Δ/ε … A_gauss(·, f, ε, δ) est (ε, δ)-DP.",
        english="Gaussian noise of variance √(2 log(1.25/δ)) Δ/ε is (ε, δ)-DP.",
        claim="Gaussian noise of this variance is (ε, δ)-private",
        published="δ as stated, for every ε",
    ),
    _at(
        name="notes.gaussian.largest",
        place="p. 11",
        sentence="P(‖A_gauss(D, f, ε, δ) − f(D)‖_∞ < √(2 log(1.25/δ)) log(K/β) Δ₂(f)/ε) ≥ 1 − β.",
        english="The largest of K Gaussian errors is below √(2 log(1.25/δ)) log(K/β) Δ/ε with probability 1 "
        "− β.",
        claim="the largest of K Gaussian errors",
        published="√(2 log(1.25/δ)) log(K/β) Δ/ε",
    ),
    _at(
        name="notes.kary.estimate",
        place="p. 16",
        sentence="ĥ_k = (mean − (1−p)/K)/(p − (1−p)/K) = (e^ε + K − 1)/(e^ε − 1) · (mean − 1).",
        english="The unbiased estimate of a share is (e^ε + K − 1)/(e^ε − 1) times the share that is seen "
        "less 1.",
        claim="the estimate of a share from k-ary responses has no bias",
        published="(e^ε + K − 1)/(e^ε − 1) · (mean − 1)",
    ),
    _at(
        name="notes.kary.error",
        place="p. 16",
        sentence="E[(ĥ_k − h_k)²] = (K − 2 + e^ε)/(n (e^ε − 1)²).",
        english="Its mean squared error is (K − 2 + e^ε)/(n (e^ε − 1)²).",
        claim="the squared error of that estimate",
        published="the same for every share; so 0.00363 at K = 10, ε = 1, n = 1,000 (by its formula)",
    ),
    _at(
        name="notes.central",
        place="p. 16",
        sentence="Ainsi, le mécanisme de Laplace … donne un ε-DP avec E[(ĥ_k − h_k)²] ≈ 1/(n² ε²).",
        english="So the Laplace mechanism gives ε-DP with a squared error of about 1/(n² ε²).",
        claim="the squared error of a share with a curator's Laplace noise",
        published="about 1/(n² ε²)",
    ),
    _at(
        name="notes.factor",
        place="p. 17",
        sentence="On constate ici une différence notable de précision/utilité entre ε-DP et ε-LDP : on perd "
        "un facteur 1/n.",
        english="There is a notable difference between ε-DP and ε-LDP: a factor 1/n is lost.",
        claim="local reports lose a factor 1/n to a curator",
        published="1/n, inevitably",
    ),
    _at(
        name="notes.end.plain",
        place="p. 17, in the margin",
        sentence="Standard : max_i X_i.",
        english="The standard way: the largest value.",
        claim="the end of uniform values without privacy",
        published="the maximum",
    ),
    _at(
        name="notes.end.central",
        place="p. 17, in the margin",
        sentence="DP = max_i |X_i| + γ.",
        english="With DP: the largest value and noise.",
        claim="the same with a curator",
        published="the maximum and noise; no error is stated",
    ),
    _at(
        name="notes.end.local",
        place="p. 17, in the margin",
        sentence="LDP = max_i |X_i| + γ√3.",
        english="With LDP: the largest of noisy values.",
        claim="the same from local reports",
        published="the largest noisy value; no error is stated",
    ),
    _at(
        name="notes.end.queries",
        place="p. 17, in the margin",
        sentence="SQ = D × C + log(n).",
        english="With statistical queries: a search by halving, about log many of them.",
        claim="the same by statistical queries",
        published="about log many",
    ),
    _at(
        name="notes.queries",
        place="p. 17",
        sentence="Si A_SQ fait au plus t requêtes, alors il existe un mécanisme ε-LDP simulant A_SQ basé sur "
        "n = t/(ε² τ²) échantillons.",
        english="If A makes at most t queries, an ε-LDP mechanism simulates it with n = t/(ε² τ²) samples.",
        claim="how many people t statistical queries need",
        published="t/(ε² τ²); so 4,000 for t = 10, τ = 0.05, ε = 1 (by its formula)",
    ),
)
