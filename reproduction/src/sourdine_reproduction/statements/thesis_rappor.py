"""The master's thesis, annexes: RAPPOR, and the four experiments of its authors."""

from functools import partial

from sourdine_reproduction.statements.base import PublishedStatement, SourceDocument
from sourdine_reproduction.statements.thesis_privacy import PLACES, THESIS

RAPPOR = SourceDocument(
    name="thesis_rappor",
    title="Thesis: RAPPOR",
    document=f"{THESIS} Chapters 6 and 7, which retell experiments of Erlingsson, Pihur and Korolova (2014).",
    places=PLACES,
)
_at = partial(PublishedStatement, source=RAPPOR)
_WHERE = "7.2, from p. 66"
_PAGES = "7.2, from p. 66, home pages in Chrome"

STATEMENTS = (
    _at(
        name="rappor.ln3",
        place=_WHERE,
        sentence="Pour chacun, on a choisi p = 0,5 et q = 0,75 (pour obtenir ε = ln 3).",
        english="For each experiment p = 0.5 and q = 0.75 were chosen (so as to have ε = ln 3).",
        claim="what one report costs at p = 0.5 and q = 0.75",
        published="ln 3",
    ),
    _at(
        name="rappor.normal",
        place=f"{_WHERE}, a normal law",
        sentence="100 000 réponses font clairement apparaître la courbe en cloche sur une représentation "
        "graphique et un million en donnent un tracé précis.",
        english="(10,000 reports are not enough.) 100,000 clearly show the bell, a million draw it "
        "precisely.",
        claim="a normal law: how many reports show the bell",
        published="10,000 too few, 100,000 clear, 1,000,000 precise",
    ),
    _at(
        name="rappor.exponential",
        place=f"{_WHERE}, an exponential law",
        sentence="Après analyse avec la correction de Bonferroni, 47 chaînes sont estimées comme "
        "significativement présentes, dont 2 seulement sont des faux positifs.",
        english="With Bonferroni's correction 47 strings are found, of which only 2 are false.",
        claim="an exponential law, 1,000,000 reports: strings found",
        published="47, 2 of them false",
    ),
    _at(
        name="rappor.frequent",
        place=f"{_WHERE}, an exponential law",
        sentence="… et toutes les chaînes présentes avec une fréquence supérieure à 1% sont détectées.",
        english="And all strings above 1 % are detected.",
        claim="every string above 1 % is found",
        published="all",
    ),
    _at(
        name="rappor.values",
        place=f"{_WHERE}, an exponential law",
        sentence="Les plus fréquentes sont particulièrement bien détectées (p-value < 10⁻¹⁰ pour le top 20, "
        "p-value < 10⁻³¹ pour le top 10)…",
        english="The most frequent are detected particularly well (p below 1e-10 for the top 20, 1e-31 for "
        "the top 10).",
        claim="p-values of the 10 and 20 most frequent strings",
        published="below 1e-31 and 1e-10",
    ),
    _at(
        name="rappor.processes.epsilon",
        place=f"{_WHERE}, names of processes",
        sentence="Avec h = 2, k = 128, m = 8, f = 0,5 pour ε₁ ≈ 1,07…",
        english="With h = 2, k = 128, m = 8, f = 0.5, for ε₁ of about 1.07.",
        claim="process names: ε₁",
        published="1.07",
    ),
    _at(
        name="rappor.processes",
        place=f"{_WHERE}, names of processes",
        sentence="… 10 processus ont été identifiés (fréquences de 2,5% à 4,5%).",
        english="10 processes were identified (2.5 % to 4.5 %).",
        claim="186,792 reports show ten names of 2.5 to 4.5 %",
        published="10",
    ),
    _at(
        name="rappor.malware",
        place=f"{_WHERE}, names of processes",
        sentence="La fréquence du malware a pu être estimée à 2,6%.",
        english="The share of the malware could be estimated at 2.6 %.",
        claim="process names: the share of the malware",
        published="2.6 %",
    ),
    _at(
        name="rappor.pages.epsilon",
        place=_PAGES,
        sentence="Avec k = 128, h = 2, m = 32 cohortes, f = 0,75 pour ε₁ ≈ 0,53…",
        english="With k = 128, h = 2, 32 cohorts, f = 0.75, for ε₁ of about 0.53.",
        claim="home pages: ε₁",
        published="0.53",
    ),
    _at(
        name="rappor.pages.least",
        place=_PAGES,
        sentence="… une page doit être signalée par environ 14 000 utilisateurs au moins pour être "
        "identifiée par RAPPOR…",
        english="A page must be reported by about 14,000 users at least to be identified.",
        claim="home pages, 12 million reports: users that a page needs to be seen",
        published="about 14,000",
    ),
    _at(
        name="rappor.pages.unexpected",
        place=_PAGES,
        sentence="… 31 pages inattendues ont été relevées, certaines sur des domaines potentiellement "
        "malicieux.",
        english="31 unexpected pages were found, some on domains that may be malicious.",
        claim="home pages: unexpected pages found",
        published="31",
    ),
    _at(
        name="rappor.pages.candidates",
        place=_PAGES,
        sentence="Seules 0,5% des URL candidates ont une présence suffisamment significative "
        "statistiquement…",
        english="Only 0.5 % of the candidate URLs are statistically significant.",
        claim="home pages: share of the candidates that is found",
        published="0.5 %",
    ),
    _at(
        name="rappor.pages.mass",
        place=_PAGES,
        sentence="… mais une fois réunies, elles représentent 85% des fréquences relevées.",
        english="But together they make up 85 % of what was reported.",
        claim="home pages: what the pages that are found make up",
        published="85 %",
    ),
)
