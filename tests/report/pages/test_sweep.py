import itertools
from typing import Any

from sourdine.core.display import picture
from sourdine.report.pages.training import sweep_figures, sweep_page, sweep_rows


def made(
    epsilons: list[float | None], noises: list[float]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows, curves = [], []
    for rate, batch, epsilon, noise in itertools.product([0.1, 0.5], [64, 512], epsilons, noises):
        level = 10 / noise if epsilon is None else epsilon
        accuracy = 0.6 + 0.1 * rate + 0.02 * level + batch / 10**4
        setting = {
            "learning_rate": rate,
            "batch_size": batch,
            "n_epochs": 2,
            "clip": 1.0,
            "hidden_units": None,
            "noise": noise * (1 if epsilon is None else batch / epsilon),
            "epsilon": level,
            "epsilon_asked": epsilon,
        }
        rows.append(
            setting | {"accuracy": accuracy, "n_times_for_avg": 2, "accuracy_std": 0.02, "seconds": 1.0}
        )
        for repeat, epoch in itertools.product((1, 2), (1, 2)):
            reached = accuracy * epoch / 2 + 0.01 * (repeat - 1.5)
            curves.append(setting | {"repeat": repeat, "epoch": epoch, "accuracy": reached})
    return rows, curves


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_says_the_finding_and_the_cost() -> None:
    rows, curves = made([1.0, 3.0], [1.0])
    page = sweep_page(rows, curves, model="linear", cost=("It cost ten.",))
    assert plain(page.title) == "76.1 % at best, with learning rate 0.5, batch 512, 2 epochs, at ε = 3"
    text = page.html()
    assert "It cost ten." in text
    titles = [plain(figure.title) for figure in page.sections[1].figures]
    assert titles == [
        "The best reach 72.1 % at ε = 1 and 76.1 % at ε = 3",
        "The best learning rate is 0.5, with 76.1 % at its best setting, at ε = 3",
        "The best batch is 512, with 76.1 % at its best setting, at ε = 3",
    ]
    assert [figure.title for figure in page.sections[2].figures] == [
        "Learning rate 0.5 ends highest on average, with 71.9 %, over ε from 1 to 3",
        "Batch 512 ends highest on average, with 72.1 %, over ε from 1 to 3",
    ]
    for figure in (*page.sections[1].figures[:1], *page.sections[2].figures[:1]):
        assert picture(figure).startswith(b"\x89PNG")


def test_noise_has_a_chart_of_its_own_where_it_was_listed() -> None:
    rows, curves = made([None], [1.0, 2.0])
    titles = [plain(figure.title) for figure in sweep_figures(rows, curves)]
    assert titles[-1] == "The best noise is 1, with 90.1 % at its best setting, at ε = 10"
    assert titles[0] == "The best reach 80.1 % at ε = 5 and 90.1 % at ε = 10"


def test_bars_are_one_standard_deviation_over_the_runs() -> None:
    rows, curves = made([1.0], [1.0])
    chart = sweep_figures(rows, curves)[0].chart
    assert isinstance(chart["datasets"], dict)
    best = next(row for row in chart["datasets"]["rows"] if row["series"] == "the best setting")
    assert abs(best["upper"] - best["accuracy"] - 100 * 0.01 / 2**0.5) < 1e-9
    assert best["runs"] == 2


def test_rows_are_sorted_with_the_best_first() -> None:
    rows, _ = made([1.0, 3.0], [1.0])
    shown = [float(row[6]) for row in sweep_rows(rows)]
    assert shown == sorted(shown, reverse=True)
    assert sweep_rows([rows[0] | {"accuracy_std": None}])[0][7] == ""


def test_a_note_says_where_there_is_one_run_alone() -> None:
    rows, curves = made([1.0, 3.0], [1.0])
    assert (
        sweep_figures(rows, curves)[0].note == "Bars are one standard deviation over the runs to either side."
    )
    once = [row for row in curves if row["repeat"] == 1]
    assert "Each setting was run once" in sweep_figures(rows, once)[0].note
    alone = [row for row in once if row["noise"] == once[0]["noise"] and row["learning_rate"] == 0.1]
    assert sweep_figures(rows, alone)[0].note == "One run: how much another would differ is not known."
