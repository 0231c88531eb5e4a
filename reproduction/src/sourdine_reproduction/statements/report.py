"""The report on private deciles: a histogram method and inverse sensitivity, in theory and in trials."""

from functools import partial

from sourdine_reproduction.statements.base import PublishedStatement, SourceDocument

REPORT = SourceDocument(
    name="report",
    title="Report on private deciles",
    document="Alexi Canesse: Arbitrages statistiques dans l'apprentissage automatique confidentiel. "
    "Internship report, 29 July 2022. A draft of 23 June 2022 has its first part; what both say is counted "
    "once.",
    places="Sections and theorems, by their numbers: the text at hand has no pages.",
)
_at = partial(PublishedStatement, source=REPORT)

STATEMENTS = (
    _at(
        name="report.naive",
        place="section 1.3",
        sentence="L'espérance de l'erreur commise en utilisant cette méthode vaut donc 1/ε alors que la "
        "médiane se situe dans [0,1]…",
        english="The expected error of this method is thus 1/ε, while the median lies in [0, 1].",
        claim="Laplace noise on a median is off by 1/ε",
        published="1/ε of the range",
    ),
    _at(
        name="report.private",
        place="theorem 2.2.0.1",
        sentence="HistogramMethod est ε-differentially private.",
        english="The histogram method is ε-differentially private.",
        claim="the histogram method is ε-private",
        published="noise 2/ε on the threshold and 4/ε on each count, at ε/9 a decile",
    ),
    _at(
        name="report.cost",
        place="section 2.3",
        sentence="L'algorithme a alors une complexité en O(n²/log n).",
        english="The algorithm then has a complexity of O(n²/log n).",
        claim="how long the histogram method takes",
        published="O(n²/log n)",
    ),
    _at(
        name="report.2.4.1.3",
        place="theorem 2.4.1.3",
        sentence="P(Aᵢ ∈ [dᵢˡ − γ − 1/k, dᵢˡ + γ + 1/k]) ≥ I_{dᵢˡ+γ}(⌈in/10+α⌉, …) − I_{dᵢˡ−γ}(⌊in/10−α⌋, "
        "…) − β.",
        english="The answer is within γ + 1/k of the law's decile with at least this probability.",
        claim="how often the histogram misses a decile of uniform values",
        published="P(> 0.0411) ≤ 0.0018 at n = 5,000, ε = 1, γ = 0.04, decile 1 (by its formula)",
    ),
    _at(
        name="report.2.4.1.4",
        place="theorem 2.4.1.4 and its corollary",
        sentence="E(|Aᵢ − dᵢˡ|) ≤ 2 log n/(3n) + dᵢˡ β + ∫₀^dᵢˡ (1 − I_{dᵢˡ+t}(⌈in/10+α⌉, …)) dt + …",
        english="The mean distance of the answer from the law's decile is at most this sum of integrals.",
        claim="the histogram's mean error on uniform values",
        published="mean ≤ 0.194 at n = 10¹², ε = 3.5e-9, decile 5 (by its formula)",
    ),
    _at(
        name="report.least",
        place="section 2.4.1, last remark",
        sentence="Par exemple, pour ε = 1 nous avons n ≥ 905.",
        english="For example, for ε = 1 we have n ≥ 905.",
        claim="from how many values on the histogram's bounds say something",
        published="905 at ε = 1",
    ),
    _at(
        name="report.2.4.2.1",
        place="theorem 2.4.2.1",
        sentence="E(|Aᵢ − dᵢˡ|) ≤ 2√(π/2n) + (dᵢˡ + 1)/(√n log n) + (log n/n)(2/3 + (16/ε) log 3) + …",
        english="The mean distance of the answer from the law's decile is at most this.",
        claim="how the histogram's mean error falls with n",
        published="mean ≤ 0.129 at n = 2,000,000, ε = 0.001, decile 5 (by its formula)",
    ),
    _at(
        name="report.rate",
        place="section 2.4.2, last remark",
        sentence="… les données empiriques semblent indiquer que nous devrions nous attendre a une borne "
        "proche d'un O(1/n).",
        english="Empirical data seem to say that we should expect a bound near O(1/n).",
        claim="the mean distance from the law's decile could fall like 1/n",
        published="O(1/n)",
    ),
    _at(
        name="report.2.5.0.1",
        place="theorem 2.5.0.1",
        sentence="P(Aᵢ ∈ [dᵢˡ − γ, dᵢˡ + γ]) ≥ 1 − β − η − μ.",
        english="The answer for normal values is within γ of the law's decile with at least this "
        "probability.",
        claim="how often the histogram misses a decile of normal values",
        published="P(> 0.2) ≤ 0.00094 at n = 100,000, ε = 1, decile 9, 40 cuts of [−6, 6] (by its formula)",
    ),
    _at(
        name="report.uniform",
        place="section 3.1",
        sentence="… si x ne contient que des 0 que l'information que l'on a est que les valeurs sont dans "
        "[−1,1], le mécanisme de sensibilité inverse retournera une valeur suivant une loi uniforme sur "
        "[−1,1].",
        english="If x holds zeros only and all that is known is that values lie in [−1, 1], inverse "
        "sensitivity returns a uniform value in [−1, 1].",
        claim="inverse sensitivity fails where all values are equal",
        published="a uniform answer",
    ),
    _at(
        name="report.smooth",
        place="section 3.2, remark",
        sentence="Une implémentation naïve en O(n² log(n)) est obtenable en modifiant de manière appropriée "
        "l'algorithme précédent.",
        english="A naive implementation in O(n² log n) comes from a suitable change of the algorithm above.",
        claim="how long smooth inverse sensitivity takes",
        published="O(n² log n)",
    ),
    _at(
        name="report.3.3.1.1",
        place="theorem 3.3.1.1",
        sentence="P(|M_cont,i − dᵢ| > 2u + ρ) ≤ (R/2ρ) exp(−n p_min,i u ε/4) + 4 exp(−n γ² p_min,i²/8) + "
        "(2γ/u) exp(−n p_min,i u/8).",
        english="One decile's answer is farther than 2u + ρ from the sample's decile with at most this "
        "probability.",
        claim="how often smooth inverse sensitivity misses the sample's decile",
        published="P(> 0.0178) ≤ 1.1e-05 at n = 100,000, ε = 0.1, u = 0.0064, ρ = 0.005, γ = 0.05 (by its "
        "formula)",
    ),
    _at(
        name="report.3.3.1.2",
        place="theorem 3.3.1.2",
        sentence="P(|M_cont,i − dᵢˡ| > 2u + ρ) ≤ (R/2ρ) exp(−n u p_min,i ε/4) + (2γ/u) exp(−n u p_min,i/8).",
        english="One decile's answer is farther than 2u + ρ from the law's decile with at most this "
        "probability.",
        claim="how often it misses the law's decile",
        published="P(> 0.0005) ≤ 1.1e-10 at n = 1,000,000, ε = 1, ρ = 0.0001, u = 0.0002 (by its formula)",
    ),
    _at(
        name="report.3.3.2.1",
        place="theorem 3.3.2.1",
        sentence="P(|M_cont,i − dᵢˡ| > 2u + ρ) ≤ (1/2ρ) exp(−nuε/4) + (4/u) exp(−nu/8).",
        english="For uniform values the same probability is at most this.",
        claim="the same for uniform values",
        published="P(> 0.0005) ≤ 2.8e-07 at n = 1,000,000, ε = 1, ρ = 0.0001, u = 0.0002 (by its formula)",
    ),
    _at(
        name="report.3.3.2.2",
        place="theorem 3.3.2.2",
        sentence="E(|M_cont,i − dᵢˡ|) ≤ ρ + 4/√n + (4/(nερ)) exp(−√n ε/2) + (16/√n) exp(−√n/4).",
        english="The mean distance from the law's decile is at most this.",
        claim="smooth inverse sensitivity's mean error on uniform values",
        published="mean ≤ 0.05 at n = 10,000, ε = 1, ρ = 0.01 (by its formula)",
    ),
    _at(
        name="report.64",
        place="section 3.3.2, last remark",
        sentence="Nous aurions alors un coût en précision pour le terme dépendant de ε valant e⁻³²/16 qui "
        "est négligeable tout en ayant un bon niveau de confidentialité.",
        english="With ρ = 1/√n and ε = 64/√n, the term with ε would cost e⁻³²/16, which is negligible, at a "
        "good level of privacy.",
        claim="ε = 64/√n costs no accuracy",
        published="e⁻³²/16",
    ),
    _at(
        name="report.figure2",
        place="section 4.1, figure 2",
        sentence="Graphe des bornes obtenues [3.3.2.1, 2.4.1.4.1] en fonction de n pour ρ = 1/√n.",
        english="Graph of the bounds against n for ρ = 1/√n.",
        claim="figure 2 draws the bounds of the theorems",
        published="curves, for three ε",
    ),
    _at(
        name="report.meeting",
        place="section 4.1",
        sentence="La borne obtenue pour le mécanisme de sensibilité inverse se comporte mieux pour les "
        "petites valeurs de n alors que celle obtenue pour la méthode des histogrammes a une convergence "
        "plus rapide vers 0.",
        english="The bound for inverse sensitivity behaves better for small n, while that of the histogram "
        "converges to 0 faster.",
        claim="the histogram's bound becomes the lower one within figure 2",
        published="no number; the curves meet near n = 1,800 at ε = 1 (by its formulas)",
    ),
    _at(
        name="report.fit.histogram",
        place="section 4.2.1",
        sentence="… dans le cas ε = 1, l'écart quadratique semble être d'espérance 35n^−1.015 pour la "
        "méthode des histogrammes…",
        english="At ε = 1 the squared deviation of the histogram method seems to have mean 35 n^−1.015.",
        claim="fit of the histogram's error on uniform values",
        published="35 n^−1.015",
    ),
    _at(
        name="report.fit.inverse",
        place="section 4.2.1",
        sentence="… et 21.5n^−0.995 pour le mécanisme de sensibilité inverse.",
        english="… and 21.5 n^−0.995 for inverse sensitivity.",
        claim="fit of inverse sensitivity's error on uniform values",
        published="21.5 n^−0.995",
    ),
    _at(
        name="report.common",
        place="section 4.2.1",
        sentence="On observe alors que pour des valeurs de n courantes (≤ 10⁸), le mécanisme de sensibilité "
        "inverse semble meilleur que la méthode que nous avons introduite…",
        english="For usual n (up to 10⁸) inverse sensitivity seems better than the method that we "
        "introduced.",
        claim="inverse sensitivity is closer than the histogram for n up to 10⁸",
        published="better",
    ),
    _at(
        name="report.asymptotic",
        place="section 4.2.1; again in 4.2.2 and, as something to be tested, in the conclusion",
        sentence="… notre méthode est asymptotiquement meilleure même si cela ne sera pas le cas en "
        "pratique.",
        english="Our method is asymptotically better, even if that will not be the case in practice.",
        claim="the histogram is closer once n is large enough",
        published="better, by the exponents 1.015 and 0.995",
    ),
    _at(
        name="report.epsilon",
        place="section 4.2.1",
        sentence="… la précision décroît moins vite quand ε décroît pour le mécanisme de sensibilité "
        "inverse.",
        english="Precision falls less quickly with ε for inverse sensitivity.",
        claim="a smaller ε hurts inverse sensitivity less",
        published="less quickly",
    ),
    _at(
        name="report.similar",
        place="section 4.2.1",
        sentence="Enfin, les deux mécanismes offrent vraiment des performances similaires.",
        english="Both mechanisms really perform alike.",
        claim="both methods perform alike on uniform values",
        published="alike",
    ),
    _at(
        name="report.normal",
        place="section 4.2.2",
        sentence="Comme dans le cas uniforme, l'écart quadratique est moins bon avec la méthode des "
        "histogrammes.",
        english="As in the uniform case, the squared deviation is less good with the histogram method.",
        claim="normal values: the histogram is less good",
        published="less good",
    ),
    _at(
        name="report.salaries.closer",
        place="section 4.2.3",
        sentence="… le graphe 5 montre que la méthode de sensibilité inverse est globalement plus précise.",
        english="Figure 5 shows that inverse sensitivity is more precise overall.",
        claim="salaries: inverse sensitivity is closer overall",
        published="more precise",
    ),
    _at(
        name="report.salaries.order",
        place="section 4.2.3",
        sentence="Il n'y a toute fois pas d'ordre de grandeur de différence entre les erreurs de deux "
        "algorithmes.",
        english="There is however no order of magnitude between the errors of the two.",
        claim="salaries: less than a factor of ten between the two",
        published="no order of magnitude",
    ),
    _at(
        name="report.salaries.small",
        place="section 4.2.3",
        sentence="… la précision de la méthode des histogrammes semble être légèrement meilleur que les "
        "petites valeurs de ε.",
        english="The histogram seems to be slightly more precise for small ε.",
        claim="salaries: the histogram is slightly closer for small ε",
        published="slightly better",
    ),
    _at(
        name="report.salaries.twenty",
        place="section 4.2.3",
        sentence="L'erreur quadratique observée, proche de 20 est donc négligeable au vu des ordres de "
        "grandeurs des données.",
        english="The squared error that is seen, near 20, is thus negligible beside the data.",
        claim="about 400,000 salaries: errors near 20 dollars",
        published="near 20, where the first decile is 34,902",
    ),
    _at(
        name="report.repeated",
        place="conclusion",
        sentence="… un développement intéressant pourrait être de comparer notre mécanisme au mécanisme de "
        "sensibilité inverse dans les cas où celui-ci performe mal pour voir si la méthode des histogrammes "
        "ne pourrait pas être meilleure dans certains cas.",
        english="It could be of interest to compare both where inverse sensitivity does badly, to see "
        "whether the histogram could be better there.",
        claim="is the histogram better where inverse sensitivity does badly?",
        published="a question",
        question=True,
    ),
)
