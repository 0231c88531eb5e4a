"""The way of a newcomer through Studio, from a file of eight columns to a release, counted as it is gone.

Every click, every field that is filled in and every key is counted where it happens, so that what docs say of
them is what a browser did.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.studio.running import settled

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

HEADER = "id,age,sex,region,pay,visits,smoker,joined"
REGIONS = ("north", "south", "east", "west")


def write_people(folder: Path, rows: int = 400) -> Path:
    """A made-up table of eight columns, as a file of text."""
    place = folder / "people.csv"
    lines = (
        f"{k},{18 + 7 * k % 70},{'fm'[k % 2]},{REGIONS[k * k % 4]},{20_000 + 37 * k % 30_000},{k % 9},"
        f"{'true' if k % 5 == 0 else 'false'},20{20 + k % 5}-0{1 + k % 9}-1{k % 10}"
        for k in range(rows)
    )
    place.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return place


@dataclass
class Hand:
    """Somebody at a page, whose fields, clicks and keys are counted."""

    page: "Page"
    fields: int = 0
    clicks: int = 0
    keys: int = 0
    steps: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def click(self, place: "Locator") -> None:
        """Click once."""
        place.click()
        self.clicks += 1

    def type(self, label: str, text: str, within: "Locator | None" = None) -> None:
        """Click into a field, write, and leave it."""
        place = (within or self.page).get_by_label(label, exact=True)
        place.fill(text)
        place.dispatch_event("change")
        self.fields += 1
        self.clicks += 1
        self.keys += len(text)

    def choose(self, label: str, option: str, within: "Locator | None" = None) -> None:
        """Choose from a list: it is opened, and something in it is taken."""
        (within or self.page).get_by_label(label, exact=True).select_option(option)
        self.fields += 1
        self.clicks += 2

    def told(self, step: str) -> None:
        """Note what was done so far, under the name of a step."""
        self.steps[step] = (self.fields, self.clicks, self.keys)

    def settled(self) -> None:
        """Wait until nothing is asked of the server any more."""
        settled(self.page)


def column(page: "Page", name: str) -> "Locator":
    """What is declared of a column."""
    return page.locator("fieldset.column").filter(has=page.locator(f"legend:text-is('{name}')"))


def onward(hand: Hand, step: str) -> None:
    """Go to the next step by its button."""
    hand.settled()
    hand.click(hand.page.locator(f"section.step:visible .onward a[data-go='{step}']"))
    hand.page.locator(f"#{step}-title").wait_for()


def declare(hand: Hand) -> None:
    """Table, people and columns, after the first page was opened."""
    page = hand.page
    hand.click(page.get_by_role("button", name="Begin"))
    page.locator("#people-title").wait_for()
    hand.told("Table")
    onward(hand, "columns")
    hand.told("People")
    hand.click(page.get_by_role("button", name="Take all"))
    hand.settled()
    hand.type("Keys, one on each line", "f\nm", column(page, "sex"))
    hand.type("Keys, one on each line", "\n".join(REGIONS), column(page, "region"))
    hand.type("To", "100000", column(page, "pay"))
    hand.type("To", "50", column(page, "visits"))
    hand.type("First", "2020-01-01", column(page, "joined"))
    hand.type("Last", "2029-12-31", column(page, "joined"))
    onward(hand, "questions")
    hand.told("Columns")


def declare_two(hand: Hand) -> None:
    """The same for the two columns alone that the question is about; the others are left out."""
    page = hand.page
    hand.click(page.get_by_role("button", name="Begin"))
    page.locator("#people-title").wait_for()
    hand.told("Table")
    onward(hand, "columns")
    hand.told("People")
    for name in ("sex", "pay"):
        hand.click(column(page, name).get_by_role("button", name="Suggestion"))
        hand.settled()
    hand.click(page.get_by_role("button", name="Leave out the"))
    hand.settled()
    hand.type("Keys, one on each line", "f\nm", column(page, "sex"))
    hand.type("To", "100000", column(page, "pay"))
    onward(hand, "questions")
    hand.told("Columns")


def ask(hand: Hand) -> None:
    """The question that is there, how many, with their mean pay, by sex."""
    page = hand.page
    hand.click(page.get_by_role("button", name="Ask for more of the same records"))
    hand.settled()
    hand.choose("Ask for", "mean", page.locator(".row.ask").nth(1))
    hand.settled()
    hand.choose("Of the column", "pay", page.locator(".row.ask").nth(1))
    hand.settled()
    hand.click(page.locator("fieldset.inner").get_by_label("sex", exact=True))
    onward(hand, "budget")
    hand.told("Questions")


def spend(hand: Hand) -> None:
    """Budget, check and release, until the result is there."""
    page = hand.page
    onward(hand, "check")  # epsilon 1 and people.ledger are there already, as in every new specification
    hand.told("Budget")
    onward(hand, "release")
    hand.told("Check")
    hand.click(page.get_by_role("button", name="Make the ledger"))
    hand.settled()
    hand.click(page.get_by_label("I know that this spends"))
    hand.click(page.get_by_role("button", name="Pay and release"))
    page.get_by_role("link", name="See the result").wait_for(timeout=120_000)
    hand.click(page.get_by_role("link", name="See the result"))
    page.locator("#result-title").wait_for()
    hand.told("Release")


def publish(page: "Page", *, whole: bool = True) -> Hand:
    """All of it, from the first page to the result; of the whole table, or of two columns."""
    hand = Hand(page)
    (declare if whole else declare_two)(hand)
    ask(hand)
    spend(hand)
    return hand
