# SPDX-License-Identifier: GPL-3.0-or-later
"""The report's pages in a real browser: phone, screen, dark, printed. What is asserted was measured in the page, not taken from its source.

``make test-full`` runs it (SLIPWAY_BROWSER=1, with Chromium, which `tools/setup browser` installs), ``make unit`` does not. The pictures are kept in build/pages.
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

import pytest
import report_facts as facts
from ansible.module_utils.slipway.report import write
from chromium import Chromium, program

pytestmark = pytest.mark.skipif(
    not os.environ.get("SLIPWAY_BROWSER"), reason="a browser: SLIPWAY_BROWSER=1, with Chromium"
)
MEASURE = (Path(__file__).parent / "measure.js").read_text()
PAGES = ("healthy", "failed_links", "many_findings", "hostile", "unreachable", "index")
PAPER = "() => getComputedStyle(document.body).backgroundColor"
# What is left of A4 between margins of 15 mm, in CSS pixels.
PRINTED = round(180 / 25.4 * 96)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Chromium]:
    assert program(), "no Chromium here: tools/setup browser"
    running = Chromium(tmp_path_factory.mktemp("chromium"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by name, written as a run writes them. The healthy host has three runs behind it."""
    folder = tmp_path_factory.mktemp("reports")
    directory = str(folder)
    for day, speed in (("2026-11-28", 41.0), ("2026-11-29", 44.9), ("2026-11-30", 12.3)):
        before = facts.healthy(directory)
        before["acceptance"]["throughput"]["output_tokens_per_second"] = speed
        write.reports({"healthy": before}, facts.run(began=f"{day}T10-00-00Z", ended=f"{day}T10-05-00Z"))
    stopped = "Cannot prove links of 'failed_links': P2P_CORRUPT, 0000:83:00.0 -> 0000:03:00.0: Data does not arrive. Set iommu=pt, and boot."
    handed_over = {
        "healthy": facts.healthy(directory),
        "failed_links": facts.failed_links(directory),
        "many_findings": facts.many_findings(directory),
        "hostile": facts.hostile(directory),
        "unreachable": facts.asked(directory),
    }
    run = facts.changed_run()
    run["changed"]["healthy"] = run["changed"].pop("infer1")
    run["changed"]["hostile"] = [{"role": facts.HOSTILE, "task": facts.HOSTILE, "on": facts.HOSTILE, "count": 2}]
    run["failures"] = {"failed_links": [stopped], "unreachable": [f"Cannot reach unreachable: {facts.HOSTILE}"]}
    written = write.reports(handed_over, run)
    return {**{one["host"]: Path(one["path"]) for one in written}, "index": folder / "index.html"}


@pytest.fixture(scope="module")
def pictures(request: pytest.FixtureRequest) -> Path:
    folder = request.config.rootpath / "build" / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def check(found: dict[str, t.Any], width: int) -> None:
    """What holds of each page, however it is shown."""
    assert found["width"] == [width, width]
    assert found["texts"] > 20
    for nothing in ("beyond", "clipped", "weak", "links", "twice"):
        assert found[nothing] == [], nothing
    assert (found["marks"], found["active"]) == (0, 0)
    assert found["language"] == "en"
    assert found["headings"][:2] == [1, 2] and found["headings"].count(1) == 1
    assert all(after <= before + 1 for before, after in zip(found["headings"], found["headings"][1:]))
    assert [table for table in found["tables"] if not table["caption"] or table["loose"]] == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    ("shown", "width", "height", "dark"),
    [
        ("phone", 360, 740, False),
        ("screen", 1280, 900, False),
        ("dark", 1280, 900, True),
        ("dark-phone", 360, 740, True),
    ],
)
def test_a_page_reads_well(
    browser: Chromium,
    pages: dict[str, Path],
    pictures: Path,
    name: str,
    shown: str,
    width: int,
    height: int,
    dark: bool,
) -> None:
    browser.open(pages[name], width, height, dark)
    found = browser.value(MEASURE)
    browser.picture(pictures / f"{name}-{shown}.png")
    check(found, width)
    assert found["small"] == []
    # It asks for nothing but itself.
    assert browser.requests() == [pages[name].resolve().as_uri()]
    scrolls = [one for one in found["scrollers"] if one["width"][0] > one["width"][1]]
    assert all(one["focus"] and one["name"] for one in scrolls)
    if width > 1000:
        assert scrolls == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_printed(browser: Chromium, pages: dict[str, Path], pictures: Path, name: str) -> None:
    # A dark screen prints on white paper all the same.
    browser.open(pages[name], PRINTED, 1000, dark=True, media="print")
    found = browser.value(MEASURE)
    browser.picture(pictures / f"{name}-print.png")
    check(found, PRINTED)
    assert browser.value(PAPER) == "rgb(255, 255, 255)"
    assert found["uncut"] == []
    # The matrix has no scroller on paper.
    assert [one for one in found["scrollers"] if one["width"][0] > one["width"][1]] == []
    printed = browser.pdf()
    (pictures / f"{name}.pdf").write_bytes(printed)
    assert printed.startswith(b"%PDF")
    boxes = set(re.findall(rb"/MediaBox \[0 0 (\d+)[.\d]* (\d+)[.\d]*\]", printed))
    assert boxes and all(abs(int(wide) - 595) <= 1 and abs(int(high) - 842) <= 1 for wide, high in boxes)


def test_what_is_dark_is_dark(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["healthy"], 1280, 900, dark=True)
    assert sum(int(part) for part in re.findall(r"\d+", browser.value(PAPER))[:3]) < 150
    browser.open(pages["healthy"], 1280, 900)
    assert browser.value(PAPER) == "rgb(255, 255, 255)"


def test_the_measure_finds_what_is_wrong(browser: Chromium, tmp_path: Path) -> None:
    """A page on which all of it is wrong: the test above can fail."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!DOCTYPE html><html><meta name='viewport' content='width=device-width'><body style='background:#fff'><h1>a</h1><p style='width:900px;color:#999'>too wide, too pale</p>"
        "<p style='height:5px;overflow:hidden'>cut</p><p style='font-size:8px'>tiny</p><table><tr><th>x</th></tr></table>"
        "<span class='mark'>bare</span><a href='#nowhere'>there</a><img alt='' src='data:,'></body></html>"
    )
    browser.open(page, 360, 740)
    found = browser.value(MEASURE)
    assert found["width"][0] > found["width"][1]
    assert [bool(found[key]) for key in ("beyond", "clipped", "weak", "small", "links", "marks", "active")] == [
        True
    ] * 7
    assert found["tables"] == [{"caption": "", "loose": 1}]
