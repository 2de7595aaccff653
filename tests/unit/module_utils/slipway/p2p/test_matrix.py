# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import colorsys
import re
import typing as t
from html.parser import HTMLParser

from ansible.module_utils.slipway.p2p import matrix

A, B, C = (f"0000:{bus}:00.0" for bus in ("03", "04", "43"))


def row(source: str, target: str, write: float | None, **others: t.Any) -> dict[str, t.Any]:
    views = {"read_gbps": None, "bidirectional_gbps": None, "latency_us": None, **others}
    return {"source": source, "target": target, "write_gbps": write, **views}


def result(*findings: tuple[str, str, str]) -> dict[str, t.Any]:
    return {
        "gpus": [{"bus_id": A, "name": "Card <1>"}, {"bus_id": B, "name": None}],
        "pairs": [row(A, B, 54.04), row(A, C, None), row(B, A, 27.0), row(B, C, 50.0), row(C, A, 5.0), row(C, B, 1.0)],
        "concurrent": [
            {"kind": "all_to_one", "name": f"to {A}", "flows": [{}, {}], "gbps": 50.0, "ideal_gbps": 54.0, "ratio": 0.926, "error": None},
            {"kind": "ring", "name": "forward", "flows": [], "gbps": None, "ideal_gbps": None, "ratio": None, "error": {"kind": "hung"}},
        ],
        "verdict": "corrupt",
        "findings": [{"id": fault, "subject": subject, "severity": severity} for fault, subject, severity in findings],
    }  # fmt: skip


FAULTS = (
    ("P2P_SLOW", f"{B} -> {A}", "fail"),
    ("P2P_CORRUPT", f"{B} -> {A}", "fail"),
    ("P2P_HUNG", f"{A} -> {C}", "warn"),
    ("P2P_COLLAPSE", "ring (forward)", "fail"),
)


def test_the_markdown_has_each_number_and_each_fault_as_a_word() -> None:
    assert matrix.markdown(result(*FAULTS)) == (
        "- 03:00.0: Card <1>\n- 04:00.0: GPU\n- 43:00.0: GPU\n\n"
        "**One way, pushed by the sender, GB/s**\n\n"
        "| from \\ to | 03:00.0 | 04:00.0 | 43:00.0 |\n|---|---:|---:|---:|\n"
        "| 03:00.0 |  | 54.0 | not measured **hung** |\n"
        "| 04:00.0 | 27.0 **corrupt** |  | 50.0 |\n"
        "| 43:00.0 | 5.0 | 1.0 |  |\n\n"
        "**At one time, GB/s**\n\n"
        "| set | copies | together | ideal | ratio |\n|---|---:|---:|---:|---:|\n"
        "| all to one, to 0000:03:00.0 | 2 | 50.0 | 54.0 | 0.93 |\n"
        "| ring, forward | 0 | hung |  |  |\n"
    )


def test_what_is_only_told_is_no_fault() -> None:
    assert matrix.words(result(("P2P_SLOW", f"{A} -> {B}", "info"))) == {}


class Cells(HTMLParser):
    """Cells with their style and text; ``tags`` are all that opened, ``sources`` what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: t.Any) -> None:
        values = dict(attrs)
        self.sources += [values[name] for name in ("src", "href") if name in values]
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "td":
            self.cells.append((values.get("class", ""), values.get("style", ""), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.cells and "td" in self.open:
            kind, style, text = self.cells[-1]
            self.cells[-1] = (kind, style, text + data + " " if data.strip() else text)


def test_the_page_stands_alone_and_has_numbers_and_words() -> None:
    page = matrix.page("Links of <node1>", result(*FAULTS))
    parser = Cells()
    parser.feed(page)
    assert parser.open == []
    assert parser.sources == []
    assert "http" not in page
    assert "<title>Links of &lt;node1&gt;</title>" in page
    assert "Card &lt;1&gt;" in page
    told = [(kind, text.strip()) for kind, _style, text in parser.cells[:9]]
    assert told == [
        ("self", ""),
        ("", "54.0"),
        ("fault", "not measured hung"),
        ("fault", "27.0 corrupt"),
        ("self", ""),
        ("", "50.0"),
        ("", "5.0"),
        ("", "1.0"),
        ("self", ""),
    ]


def test_shades_keep_their_order_in_grey_and_their_text_can_be_read() -> None:
    greys = []
    for step in range(101):
        style = matrix._shade(max(step, 0.01), 100.0)
        found = re.search(r"hsl\(210, 60%, (\d+)%\); color: (#\w+)", style)
        assert found
        ground, ink = luminance(int(found[1])), 1.0 if found[2] == "#fff" else 0.0
        greys.append(ground)
        assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) >= 4.5, style
    assert greys == sorted(greys, reverse=True)
    assert greys[0] - greys[-1] > 0.7


def luminance(lightness: int) -> float:
    """Relative luminance of the hue at this lightness (WCAG 2)."""
    parts = colorsys.hls_to_rgb(210 / 360, lightness / 100, 0.6)
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_other_views_are_shown_where_there_are_figures() -> None:
    told = result()
    told["pairs"][0]["latency_us"] = 0.42
    text = matrix.fragment(told)
    assert "A small copy, microseconds (darker is slower)" in text
    assert ">0.4<" in text
    assert "pulled" not in text


def test_without_pairs_it_says_so() -> None:
    nothing = {**result(), "pairs": []}
    assert matrix.markdown(nothing) == "No pairs of GPUs were measured.\n"
    assert "No pairs of GPUs were measured." in matrix.fragment(nothing)
