from __future__ import annotations

from music_evals.benchmark.contents import grouped_remarks


def test_many_remarks_of_one_kind_are_one_line() -> None:
    """A hundred answers with headers of their own: one remark for each text and step would hide all others."""
    headers = {f"headers: '## Verse {n}' became '(verse{n})'": 1 for n in range(100)}
    counts = {
        **headers,
        "the lyrics are empty": 7,
        "emphasis: '**A**' became '# A'": 2,
        "emphasis: '**B**' became '# B'": 1,
    }
    assert grouped_remarks(counts) == [
        ("headers: '## Verse 0' became '(verse0)'", 99, 100),
        ("the lyrics are empty", 0, 7),
        ("emphasis: '**A**' became '# A'", 0, 2),
        ("emphasis: '**B**' became '# B'", 0, 1),
    ]


def test_remarks_without_a_quotation_stay_apart() -> None:
    counts = {f"note: number {n}": n for n in range(1, 9)}
    assert grouped_remarks(counts) == [(f"note: number {n}", 0, n) for n in range(8, 0, -1)]
