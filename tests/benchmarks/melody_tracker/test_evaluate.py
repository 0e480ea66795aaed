"""The table of the page is of the file beside it."""

from benchmarks.melody_tracker.evaluate import PAGE, RESULTS, table_of
from benchmarks.musib.tables import fill


def test_the_page_holds_the_table_of_its_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert fill(page, {"results": table_of(RESULTS)}) == page
