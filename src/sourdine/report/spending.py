"""What a ledger has spent over time, as a page."""

from collections.abc import Sequence

from sourdine.accounting.ledger import Entry, Status, Terms
from sourdine.accounting.ledger.receipt import readable
from sourdine.report.charts import COLOURS, GREY, ROWS, Row, Spec, finish
from sourdine.report.page import Figure, Page, Section
from sourdine.report.table import Table


def spending_page(terms: Terms, status: Status, entries: Sequence[Entry]) -> Page:
    """The ledger for people: where it stands, how it got there, and every charge."""
    share = float(status.spent / status.limit)
    at = f" at delta {status.delta:g}" if status.delta is not None else ""
    charges = Table(
        name="charges",
        title="Every charge",
        columns=("line", "time (UTC)", "author", "purpose", status.currency, "total"),
        rows=tuple(
            (
                entry.number,
                f"{entry.time:%Y-%m-%d %H:%M}",
                entry.author,
                entry.purpose,
                float(entry.price),
                float(entry.total),
            )
            for entry in entries
        ),
    )
    figure = Figure(
        title=f"{share:.0%} of the budget is spent, in {len(entries)} charges",
        chart=draw_spending(entries, status),
        note=f"Steps: the total after each charge, in {status.currency}. Dashed: the whole budget.",
    )
    stand = Section(
        title="Where it stands",
        points=(
            f"It protects each {terms.unit}, between {terms.neighbours} neighbours.",
            f"Spent: {status.currency} {readable(status.spent)} of {readable(status.limit)}, that is epsilon "
            f"{status.epsilon:.4g} of {status.epsilon_limit:.4g}{at}.",
            f"Left: {readable(status.left)}. Nothing spent ever comes back.",
        ),
        figures=(figure,) if entries else (),
    )
    return Page(
        title="A privacy budget over time",
        lead=f"Ledger {status.ledger[:8]}, {len(entries)} charges, replayed and checked.",
        sections=(stand, Section(title="Charges", tables=(charges,) if entries else ())),
    )


def draw_spending(entries: Sequence[Entry], status: Status) -> Spec:
    """A step line of the total over time under the limit."""
    import altair as alt

    rows: list[Row] = [
        {
            "time": entry.time.isoformat(),
            "total": float(entry.total),
            "price": float(entry.price),
            "purpose": entry.purpose,
        }
        for entry in entries
    ]
    chart = alt.Chart(alt.NamedData(name=ROWS))
    when = alt.X("time:T", title="time (UTC)")
    spent = alt.Y("total:Q", title=f"{status.currency} spent", scale=alt.Scale(zero=True))
    tips = [
        alt.Tooltip("time:T", title="time", format="%Y-%m-%d %H:%M"),
        alt.Tooltip("purpose:N"),
        alt.Tooltip("price:Q", title=status.currency, format=".4~g"),
        alt.Tooltip("total:Q", title="total", format=".4~g"),
    ]
    line = chart.mark_line(interpolate="step-after", strokeWidth=2, color=COLOURS[0]).encode(when, spent)
    points = chart.mark_point(filled=True, size=40, color=COLOURS[0]).encode(when, spent, tooltip=tips)
    limit = alt.Chart(alt.InlineData(values=[{"limit": float(status.limit)}]))
    rule = limit.mark_rule(strokeDash=[4, 4], color=GREY).encode(alt.Y("limit:Q"))
    return finish(alt.layer(rule, line, points), rows)
