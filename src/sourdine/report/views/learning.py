"""What trained models show of themselves: how they were trained and what it cost, never their weights."""

from sourdine.core.display import view
from sourdine.learning.least_squares.solve import Solved
from sourdine.learning.result import Trained
from sourdine.report.view import Section, TextTable
from sourdine.report.views.accounting import release_view
from sourdine.report.views.view import View


@view.register
def _trained(release: Trained) -> View:
    return _model(release)


@view.register
def _solved(release: Solved) -> View:
    return _model(release)


def _model(release: Trained | Solved) -> View:
    rows = [*release.words().items()]
    if release.accuracy is not None:
        rows.append(("accuracy on public data", f"{100 * release.accuracy:.2f} %"))
    table = TextTable(name="run", title="", columns=("what", "as it was"), rows=tuple(rows))
    return release_view(
        release, f"{type(release.model).__name__}, trained privately", Section(title="", tables=(table,))
    )
