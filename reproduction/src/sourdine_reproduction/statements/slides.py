"""The slides on local privacy: coins, bounded noise, and a cleaned table."""

from functools import partial

from sourdine_reproduction.statements.base import PublishedStatement, SourceDocument

SLIDES = SourceDocument(
    name="slides",
    title="Slides on local privacy",
    document="Jean-François Couchot: ε-LDP. Slides of a lecture, 26 November 2023.",
    places="Slides, by number where the text at hand has it, else by their title.",
)
_at = partial(PublishedStatement, source=SLIDES)
_OPEN = "“Motivation : estimation du pourcentage de tricheurs”, open questions"

STATEMENTS = (
    _at(
        name="slides.ln3",
        place="“Motivation : estimation du pourcentage de tricheurs”",
        sentence="Pr[M(x₁)=y]/Pr[M(x₂)=y] ≤ Pr[M(oui)=oui]/Pr[M(oui)=oui] ≤ 3 ⇝ Mécanisme ln(3)-LDP.",
        english="The ratio of probabilities is at most 3, so the mechanism is ln 3-LDP.",
        claim="two coins are ln 3-private",
        published="ratio at most 3",
    ),
    _at(
        name="slides.biased",
        place=_OPEN,
        sentence="L'estimateur est-il biaisé ? On peut espérer que non !",
        english="Is the estimator biased? One may hope not!",
        claim="two coins: is the estimate 2r − 1/2 biased?",
        published="a question",
        question=True,
    ),
    _at(
        name="slides.variance",
        place=_OPEN,
        sentence="Quid de la variance ?",
        english="What of the variance?",
        claim="two coins: what of the variance?",
        published="a question",
        question=True,
    ),
    _at(
        name="slides.others",
        place=_OPEN,
        sentence="Et si on utilisait d'autres probabilités que 1/2, 1/2 ?",
        english="And if other probabilities than 1/2, 1/2 were used?",
        claim="two coins: other probabilities?",
        published="a question",
        question=True,
    ),
    _at(
        name="slides.laplace",
        place="“Données continues, encore Laplace”",
        sentence="Preuve d'ε-LDP : similaire, à celle d'ε-DP.",
        english="Proof of ε-LDP: like that of ε-DP.",
        claim="bounded Laplace noise by rejection, of scale range/ε, is ε-private",
        published="ε",
    ),
    _at(
        name="slides.total",
        place="slide 13 of 16, a comment in the code",
        sentence="#valeur du eps global?",
        english="The value of the whole ε?",
        claim="what does ε = 1 a column cost a person?",
        published="a question",
        question=True,
    ),
    _at(
        name="slides.accuracy.plain",
        place="slide 13 of 16",
        sentence="# 0.6038961038961039 vs 0.7857142857142857",
        english="Accuracy: cleaned against not cleaned.",
        claim="accuracy without noise",
        published="0.786",
    ),
    _at(
        name="slides.f1.plain",
        place="slide 13 of 16",
        sentence="# 0.11594202898550726 vs 0.6373626373626374",
        english="F1: cleaned against not cleaned.",
        claim="F1 without noise",
        published="0.637",
    ),
    _at(
        name="slides.accuracy.one",
        place="slide 13 of 16",
        sentence="# 0.6038961038961039 vs 0.7857142857142857",
        english="Accuracy: cleaned against not cleaned.",
        claim="accuracy at ε = 1 a column, Laplace, judged by noised outcomes",
        published="0.604",
    ),
    _at(
        name="slides.f1.one",
        place="slide 13 of 16",
        sentence="# 0.11594202898550726 vs 0.6373626373626374",
        english="F1: cleaned against not cleaned.",
        claim="F1 at ε = 1 a column, Laplace, judged by noised outcomes",
        published="0.116",
    ),
    _at(
        name="slides.staircase",
        place="slide 14 of 16",
        sentence="Preuvee d'ε-LDP : admise.",
        english="Proof of ε-LDP: taken for granted.",
        claim="staircase noise over the range, added without bounds, is ε-private",
        published="ε",
    ),
    _at(
        name="slides.staircase.bounded",
        place="“Nettoyage avec stairCase et GRR”, the code",
        sentence="stairc = mechanisms.Staircase(epsilon=1,sensitivity=mx-mi)",
        english="The staircase of ε = 1 over the range (which is then drawn again until it lies inside).",
        claim="staircase noise bounded by rejection still is ε-private",
        published="ε = 1 (in the code; the next slide compares by this ε)",
    ),
    _at(
        name="slides.below",
        place="“Utilité de mécanismes v.-à-v. du GNB”",
        sentence="ε ∈ [10⁻², 1[ : réponses ≈ aléatoire similaires.",
        english="For ε from 0.01 to 1: answers about as random, alike.",
        claim="below ε = 1, both answer about at random",
        published="alike",
    ),
    _at(
        name="slides.above",
        place="“Utilité de mécanismes v.-à-v. du GNB”",
        sentence="ε ∈ [1, 10] : M_Stair plus utile que M_Lb.",
        english="For ε from 1 to 10: the staircase is more useful than bounded Laplace.",
        claim="from ε = 1 on, the staircase is more useful than Laplace",
        published="more useful",
    ),
)
