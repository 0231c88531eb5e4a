"""The master's thesis, second chapter: anonymity, coins, what epsilon means, and the formulas behind."""

from functools import partial

from sourdine_reproduction.statements.base import PublishedStatement, SourceDocument

THESIS = (
    "Jean-Marc Gervais: Deep learning et respect des informations individuelles sensibles. Master's thesis, "
    "13 July 2020."
)
PLACES = "Sections, and the page on which the table of contents has them begin."
PRIVACY = SourceDocument(
    name="thesis_privacy",
    title="Thesis: notions of privacy",
    document=f"{THESIS} Chapter 2.",
    places=PLACES,
)
_at = partial(PublishedStatement, source=PRIVACY)

STATEMENTS = (
    _at(
        name="thesis.table",
        place="2.2.2, from p. 10, the table",
        sentence="Prenons un exemple avec k = 2 : …",
        english="Let us take an example with k = 2 (two tables of six patients follow).",
        claim="six patients, made 2-anonymous by age bands and districts",
        published="six rows",
    ),
    _at(
        name="thesis.risk",
        place="2.2.2, from p. 10",
        sentence="La probabilité d'identification individuelle tombe ainsi à 1/k dans le pire des cas.",
        english="The probability of being identified thus falls to 1/k in the worst case.",
        claim="the probability of being identified, at worst",
        published="1/k, here 1/2",
    ),
    _at(
        name="thesis.excluded",
        place="2.2.2, from p. 10",
        sentence="… il reste souvent possible de savoir que certaines valeurs sont exclues, pour un champ "
        "sensible (asthme impossible pour « 35-45, Montbéliard »)…",
        english="It often remains possible to know that some values are excluded (no asthma for 35-45, "
        "Montbéliard).",
        claim="some treatments are excluded for a class",
        published="no asthma for 35-45 in Montbéliard",
    ),
    _at(
        name="thesis.leak",
        place="2.2.2, from p. 10",
        sentence="Et en cas de valeur identique sur des données sensibles pour tous les membres d'un groupe "
        "d'anonymat, on retrouve même cette information de manière certaine (leucémie, pour « 60+, Besançon "
        "»).",
        english="Where all members of a class share a sensitive value, it is even known for certain "
        "(leukaemia, for 60+, Besançon).",
        claim="leukaemia is certain for 60+ in Besançon",
        published="certain",
    ),
    _at(
        name="thesis.diverse",
        place="2.2.2, from p. 10",
        sentence="Pour éviter cette situation, le concept de ℓ-diversité ajoute la contrainte que tout "
        "groupe d'anonymat contienne au minimum ℓ valeurs distinctes des données sensibles à protéger.",
        english="To avoid this, l-diversity adds that every class hold at least l distinct sensitive values.",
        claim="l-diversity avoids that a treatment is certain",
        published="avoided",
    ),
    _at(
        name="thesis.close",
        place="2.2.2, from p. 10",
        sentence="Dans ce dernier cas, on risque cependant de perdre l'intérêt même de l'étude des données, "
        "en gommant trop les corrélations…",
        english="With t-closeness, however, one risks losing what the data were studied for, by erasing "
        "correlations.",
        claim="t-closeness may erase what the table was for",
        published="a risk",
    ),
    _at(
        name="thesis.coin",
        place="2.3.1, from p. 11",
        sentence="Cela lui garantit un déni plausible, concept clé dans ce cadre : rien ne permet d'être "
        "certain qu'une réponse « Oui » correspond à la réalité.",
        english="This gives plausible deniability: nothing makes it certain that a “Yes” is the truth.",
        claim="one coin (heads: truth, tails: yes): a yes can be denied, and p ≈ 2r − 1",
        published="deniable",
    ),
    _at(
        name="thesis.objection",
        place="2.3.1, from p. 11",
        sentence="On peut objecter que le déni plausible n'est pas accordé à la réponse « Non », ce qui "
        "pourrait pousser à fournir cette dernière de manière malhonnête…",
        english="One may object that a “No” is not deniable, which might tempt people to give it "
        "dishonestly.",
        claim="one coin: a no cannot be denied",
        published="not deniable",
    ),
    _at(
        name="thesis.warner",
        place="2.3.1, from p. 11",
        sentence="L'intérêt est de protéger encore mieux le secret du sondé.",
        english="Its point is to protect the secret of the person asked even better.",
        claim="Warner's biased coin protects even better than two coins",
        published="even better",
    ),
    _at(
        name="thesis.sum",
        place="2.3.3, from p. 12",
        sentence="Ce mécanisme garantit donc la 1-DP.",
        english="So this mechanism (a sum with noise Lap(1/ε)) guarantees 1-DP.",
        claim="a noisy sum with Lap(1/ε) is 1-private",
        published="1",
    ),
    _at(
        name="thesis.variation",
        place="2.3.3, from p. 12",
        sentence="… réciproquement, une garantie d'ε-DP implique la δ-proximité statistique pour δ = 1 − "
        "e^ε.",
        english="Conversely, ε-DP implies statistical closeness with δ = 1 − e^ε.",
        claim="the total variation that ε allows",
        published="1 − e^ε; so −1.7183 at ε = 1 (by its formula)",
    ),
    _at(
        name="thesis.premium",
        place="2.3.3, from p. 12",
        sentence="Pour une valeur initiale de 2 000€ et un paramètre de risque à ε = 0,01 la nouvelle prime "
        "ne dépassera donc pas 2 020€ environ…",
        english="From 2,000 at first and ε = 0.01, the new premium will not exceed about 2,020.",
        claim="Gertrude's premium at ε = 0.01",
        published="at most about 2,020",
    ),
    _at(
        name="thesis.bounds",
        place="2.3.3, from p. 12",
        sentence="p/(p + e^ε(1−p)) < p′ < p/(p + e^−ε(1−p)).",
        english="Belief after an answer lies between these two.",
        claim="bounds on belief",
        published="the two bounds, not reached",
    ),
    _at(
        name="thesis.beliefs",
        place="2.3.3, from p. 12, the table",
        sentence="Observons également quelques valeurs de la borne haute de la croyance a posteriori : …",
        english="Let us also look at some values of the upper bound on belief (a table follows).",
        claim="the table of greatest beliefs",
        published="88 numbers",
    ),
    _at(
        name="thesis.density",
        place="2.3.5, from p. 17, footnote 21",
        sentence="La densité devient f(v) = 1/(2λ) exp(−‖v‖₁/λ).",
        english="(In d dimensions) the density becomes 1/(2λ) exp(−‖v‖₁/λ).",
        claim="the density of Laplace noise in d dimensions",
        published="1/(2λ) exp(−‖v‖₁/λ)",
    ),
    _at(
        name="thesis.gaussian",
        place="2.4.1, from p. 21",
        sentence="… le mécanisme gaussien G_σ f garantit la (ε, δ)-DP quand ε < 1 et σ > (Δ₂(f)/ε) √(2 "
        "ln(1,25/δ)).",
        english="Gaussian noise is (ε, δ)-DP when ε < 1 and σ > (Δ/ε) √(2 ln(1.25/δ)).",
        claim="how much Gaussian noise is enough",
        published="9.69 at ε = 0.5, δ = 1e-5, Δ = 1 (by its formula)",
    ),
    _at(
        name="thesis.delta",
        place="2.4.1, from p. 21",
        sentence="… autrement dit quand ε < 1 et δ > (5/4) exp(−[Δ₂(f) σ]²/2).",
        english="In other words when ε < 1 and δ > (5/4) exp(−[Δσ]²/2).",
        claim="which δ a Gaussian noise gives",
        published="5.12e-21 for σ = 9.69, Δ = 1 (by its formula)",
    ),
    _at(
        name="thesis.renyi",
        place="2.4.2, from p. 23",
        sentence="Pour α > 1, la divergence de Rényi d'ordre α est définie par D_α(P‖Q) = (1/(α−1)) ln "
        "E_{x~Q}(P(x)/Q(x)).",
        english="For α > 1 the Rényi divergence of order α is 1/(α−1) times the logarithm of the mean of P/Q "
        "under Q.",
        claim="the Rényi divergence",
        published="0 for every pair of laws (by its formula; the cases printed below it have the exponent)",
    ),
    _at(
        name="thesis.curve",
        place="2.4.2, from p. 23",
        sentence="Si une fonction f a une ℓ₂-sensibilité de C > 0, alors le mécanisme G_{Cσ} f est (α, "
        "ε(α))-RDP pour tout α > 1, si l'on prend ε(α) = α/(2(Cσ)²).",
        english="If f has sensitivity C, noise Cσ is (α, ε(α))-RDP with ε(α) = α/(2(Cσ)²).",
        claim="the Rényi curve of Gaussian noise Cσ on a sensitivity of C",
        published="0.065 at α = 13, C = 10, σ = 1 (by its formula)",
    ),
    _at(
        name="thesis.batches",
        place="2.4.2, from p. 23",
        sentence="On le réitère jusqu'à avoir traité l'ensemble des données.",
        english="It (a random sample, with Gaussian noise on its answer) is repeated until all data have "
        "been used.",
        claim="batches cut from shuffled data cost what random samples cost",
        published="the ε of random samples, so 1.17 for the printed run and 4 to 8.3 for the flowers",
    ),
)
