"""The master's thesis, third and fourth chapters: the budget tool, digits, flowers and memory."""

from functools import partial

from sourdine_reproduction.statements.base import PublishedStatement, SourceDocument
from sourdine_reproduction.statements.thesis_privacy import PLACES, THESIS

LEARNING = SourceDocument(
    name="thesis_learning",
    title="Thesis: private learning",
    document=f"{THESIS} Chapters 3 and 4.",
    places=PLACES,
)
_at = partial(PublishedStatement, source=LEARNING)
_PRINTED = "4.1.1, from p. 41, the printed call"

STATEMENTS = (
    _at(
        name="thesis.steps",
        place=_PRINTED,
        sentence="iterated over 14070 steps",
        english="60,000 examples in batches of 64 for 15 epochs take 14,070 steps.",
        claim="steps of the printed run",
        published="14070",
    ),
    _at(
        name="thesis.rate",
        place=_PRINTED,
        sentence="sampling rate = 0.107%",
        english="A batch is 0.107 % of the data: 64 of 60,000.",
        claim="sampling rate of the printed run, in %",
        published="0.107",
    ),
    _at(
        name="thesis.epsilon",
        place=_PRINTED,
        sentence="satisfies differential privacy with ε = 1.17 and δ = 1e-05.",
        english="With noise 1 the run is private at ε = 1.17 and δ = 1e-5.",
        claim="what the printed run costs",
        published="1.17",
    ),
    _at(
        name="thesis.order",
        place=_PRINTED,
        sentence="The optimal α is 13.0.",
        english="Of the Rényi orders that were tried, 13 gives the least ε.",
        claim="the best order for the printed run",
        published="13",
    ),
    _at(
        name="thesis.synthetic",
        place="4.1.2, from p. 42",
        sentence="Cela met en évidence l'intérêt de la création artificielle des données « de synthèse ».",
        english="(Too few data make enough privacy hard to have.) This shows the point of making artificial "
        "data (by rotating, shifting or blurring images).",
        claim="copies of images count as more data, and lower ε",
        published="no number; enough privacy with fewer originals (by the sentence before)",
    ),
    _at(
        name="thesis.size",
        place="4.1.2, from p. 42",
        sentence="À l'inverse, au delà d'un certain seuil, le tracé nous montre que le nombre d'entrées aura "
        "à lui seule une influence modeste sur le coefficient ε.",
        english="Conversely, beyond some threshold the number of entries alone has a modest influence on ε.",
        claim="beyond some size, more data hardly lower ε",
        published="a modest influence",
    ),
    _at(
        name="thesis.batch",
        place="4.1.2, from p. 42",
        sentence="Taille des mini-batches : plus petits, ils ajoutent de l'aléa, favorable à la "
        "confidentialité.",
        english="Smaller batches add randomness, which helps privacy.",
        claim="smaller batches cost less",
        published="less",
    ),
    _at(
        name="thesis.first",
        place="4.1.2, from p. 42",
        sentence="Nombre d'epochs : dès le premier cycle, ε a déjà une valeur non négligeable qui dépend des "
        "autres hyper-paramètres.",
        english="From the first epoch on, ε already has a value that is not negligible.",
        claim="the first epoch already costs an ε that is not negligible",
        published="not negligible",
    ),
    _at(
        name="thesis.price",
        place="4.1.2, from p. 42",
        sentence="Les représentations suivantes montrent cependant que prendre une valeur trop basse « par "
        "sécurité » n'est pas sans conséquence sur le coût ε.",
        english="A δ that is too low “to be safe” is not without consequence for ε.",
        claim="a smaller δ has its price in ε",
        published="a larger ε",
    ),
    _at(
        name="thesis.moments",
        place="4.1.3, from p. 46",
        sentence="… d'où finalement A_α = Σ_{k=0}^{α} (1 − q)^{α−k} q^k exp((k² − k)/(2σ²))…",
        english="So at last A_α is this sum (without binomial coefficients).",
        claim="the moments of a sampled step, at whole orders",
        published="a divergence of −0.001066 for one printed step at α = 13 (by its formula)",
    ),
    _at(
        name="thesis.mnist.plain",
        place="4.2.3, from p. 51",
        sentence="Avec les réglages par défaut, à savoir une taille de mini-batch de 64 et un taux "
        "d'apprentissage de 0,1 la précision obtenue sur le modèle de base, au bout de 10 epochs est en "
        "moyenne de 99,0 %.",
        english="With batches of 64 and a learning rate of 0.1, the plain model is right 99.0 % of the time "
        "on average after 10 epochs.",
        claim="MNIST: accuracy without privacy",
        published="99.0 %",
    ),
    _at(
        name="thesis.mnist.private",
        place="4.2.3, from p. 51",
        sentence="Elle tombe à 91,2 % en moyenne…",
        english="It falls to 91.2 % on average (when the model is converted to DP).",
        claim="MNIST: accuracy with privacy, the same settings",
        published="91.2 %",
    ),
    _at(
        name="thesis.mnist.lost",
        place="4.2.3, from p. 51",
        sentence="… soit une baisse de 8 points (8,1 %), quand le modèle est converti en version DP.",
        english="… a loss of 8 points (8.1 %), when the model is converted to DP.",
        claim="MNIST: what privacy costs",
        published="8 points (8.1 %)",
    ),
    _at(
        name="thesis.mnist.deviation",
        place="4.2.3, from p. 51",
        sentence="Et les résultats sont alors bien plus irréguliers, puisque l'écart-type est plus que "
        "triplé.",
        english="And results are then much less regular, since the standard deviation is more than tripled.",
        claim="MNIST: the deviation is more than tripled with privacy",
        published="more than 3 times",
    ),
    _at(
        name="thesis.flowers.plain",
        place="4.2.3, from p. 51",
        sentence="En général après une vingtaine de cycles, on peut dépasser régulièrement 94 % (sans "
        "atteindre 95 % sauf cas exceptionnel).",
        english="In general 94 % can be exceeded after some twenty epochs (hardly ever 95 %).",
        claim="flowers: accuracy without privacy",
        published="over 94 %",
    ),
    _at(
        name="thesis.flowers.reach",
        place="4.2.3, from p. 51",
        sentence="Il s'est avéré impossible d'atteindre une précision dépassant nettement 55 %, sans que la "
        "valeur ε mesurant la perte de confidentialité soit trop grande pour offrir encore une réelle "
        "garantie.",
        english="It proved impossible to get clearly above 55 % without an ε too large to be a guarantee.",
        claim="flowers: more than about 55 % is out of reach at an ε that says something",
        published="about 55 %",
    ),
    _at(
        name="thesis.flowers.delta",
        place="4.2.3, from p. 51",
        sentence="Avec δ = 10⁻⁵ par exemple, ε augmenterait de l'ordre de 10 % pour ses grandes valeurs … à "
        "12 % pour les faibles…",
        english="With δ = 1e-5, say, ε would grow by about 10 % where it is large to 12 % where it is small.",
        claim="flowers: what a tenth of δ costs",
        published="10 to 12 %",
    ),
    _at(
        name="thesis.flowers.chance",
        place="4.2.3, from p. 51",
        sentence="Mais elle est 56 fois plus précise qu'une réponse au hasard parmi les 102 catégories, là "
        "où le taux obtenu en DP pour MNIST est environ 9 fois plus élevé que celui d'un tirage aléatoire.",
        english="But 55 % is 56 times better than chance among 102 kinds, where MNIST with DP is about 9 "
        "times better.",
        claim="55 % of 102 kinds and 91.2 % of 10, beside chance",
        published="56 and about 9 times",
    ),
    _at(
        name="thesis.flowers.rows",
        place="4.2.3, table 1 (the page before 4.3, p. 54)",
        sentence="Résultats sur « 102 flowers » en version DP.",
        english="Results on 102 flowers with DP: the column of ε, but for its fourth and fifth rows.",
        claim="flowers: eleven ε of the table",
        published="8.3, 8.1, 7.5, 5.4, 5, 4.9, 5.3, 4.8, 4.7, 4.2, 4",
    ),
    _at(
        name="thesis.flowers.120",
        place="4.2.3, table 1, row 4",
        sentence="64 | 1 | 12 | 0,0007 | 120 | 6,2 | 56,1 %",
        english="Batch 64, noise 1, clipping 12, rate 0.0007, 120 epochs, ε = 6.2, 56.1 %.",
        claim="flowers: batch 64, noise 1, 120 epochs",
        published="6.2",
    ),
    _at(
        name="thesis.flowers.105",
        place="4.2.3, table 1, row 5",
        sentence="64 | 1 | 10 | 0,0007 | 105 | 5,8 | 54,4 %",
        english="Batch 64, noise 1, clipping 10, rate 0.0007, 105 epochs, ε = 5.8, 54.4 %.",
        claim="flowers: batch 64, noise 1, 105 epochs",
        published="5.8",
    ),
    _at(
        name="thesis.flowers.accuracy",
        place="4.2.3, table 1",
        sentence="Résultats sur « 102 flowers » en version DP.",
        english="Results on 102 flowers with DP: the column of accuracies.",
        claim="flowers: thirteen accuracies",
        published="57 % at ε = 8.3 down to 43.6 % at ε = 4",
    ),
    _at(
        name="thesis.memory.images",
        place="4.3.3, from p. 56",
        sentence="La demande s'élève ainsi à (588 × 1 024 k × BS²/F) où k ∈ [1; 2[.",
        english="So the demand is (588 × 1,024 k × BS²/F) bytes with k in [1, 2).",
        claim="memory of a batch of images, reduced F times in each direction",
        published="∝ BS²/F; the sentence before has BS/F²",
    ),
    _at(
        name="thesis.memory.added",
        place="4.3.3, from p. 56",
        sentence="On peut donc estimer à (108 500 BS × HU) ce second surcoût associé à la confidentialité "
        "différentielle.",
        english="So what privacy adds the second time can be estimated at (108,500 BS × HU) bytes.",
        claim="memory that privacy adds in PyTorch-DP, for each example and hidden unit",
        published="108,500 bytes; 55.552 MB an example at 512 units",
    ),
)
