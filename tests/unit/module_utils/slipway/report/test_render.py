# SPDX-License-Identifier: GPL-3.0-or-later
"""What a page shows is what was said, whatever was said: neither HTML nor Markdown nor a terminal takes it for its own."""

from __future__ import annotations

import re
import typing as t
from html.parser import HTMLParser

import pytest
import report_facts as facts
from ansible.module_utils.slipway.report import content, render, sections
from markupsafe import Markup


class Page(HTMLParser):
    """Tags with their attributes, and the text outside of the style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: t.Any) -> None:
        self.tags.append((tag, dict(attrs)))
        self._style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        if not self._style:
            self.text += data


def pages(gathered: dict[str, t.Any], **changed: t.Any) -> tuple[str, str]:
    """HTML and Markdown."""
    report = content.compose("infer1", gathered, facts.run(**changed), [])
    values = {"report": report, "sections": sections.page(report), "facts": sections.facts(report), "tone": "good"}
    return render.html("report.html.j2", **values), render.markdown("report.md.j2", **values)


def test_hostile_text_adds_no_tag_and_no_address() -> None:
    failures = {"infer1": [facts.HOSTILE]}
    html, _markdown = pages(facts.hostile(), failures=failures)
    page = Page(html)
    assert not {"script", "img", "iframe", "object", "link", "form"} & {tag for tag, _attributes in page.tags}
    for _tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert re.match(r"#[\w-]+$|\.\./", attributes.get("href") or "#x")
    assert "<script>alert(1)</script>" in page.text and "{{ 7 * 7 }}" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\u200b]", html)


def test_hostile_text_makes_no_markdown() -> None:
    _html, markdown = pages(facts.hostile(), failures={"infer1": [facts.HOSTILE]})
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\u200b]", markdown)
    for line in markdown.splitlines():
        if line.startswith("    "):  # the server's command line is code
            continue
        assert not re.search(r"(?<!\\)<(script|img|/td)", line)
        assert not re.search(r"(?<!\\)\[a\]\(javascript", line), line
        # A bar in a cell would be one cell more.
        if line.startswith("| ") and "alert" in line:
            assert len(re.findall(r"(?<!\\)\|", line)) <= 7


def test_the_two_forms_have_the_same_sections() -> None:
    html, markdown = pages(facts.healthy())
    in_html = re.findall(r"<h2 id=[^>]+>(.*?)</h2>", html)
    assert in_html == re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert in_html[:6] == [
        "What to do next", "What was asked for", "What was found", "What was changed", "What is proven", "What is not proven",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        "def fibonacci(n):",
        "Tokyo",
        "44.8",
        "0.21 / 0.34 / 0.41 / 0.52",
        "48\u202f600",
        "mem-fraction-static 0.92",
        "53.2",
        "2.27.5",
        "nowhere",
        "rtx6kpro, models/glm5",
        "gpu_container_allow_restart",
    ],
)
def test_figures_and_answers_are_on_the_page(said: str) -> None:
    html, markdown = pages(facts.healthy())
    assert said in Page(html).text
    assert said in markdown.replace("\\", "")


def test_what_was_not_measured_is_told_so() -> None:
    gathered = facts.healthy()
    # As an earlier version kept it.
    gathered["acceptance"]["throughput"] = {"output_tokens_per_second": 44.8}
    gathered["acceptance"]["links"]["result"] = {"verdict": "ok", "pairs": [{"source": "a"}]}
    text = " ".join(Page(pages(gathered)[0]).text.split())
    assert "44.8 tokens a second, the first after not measured s" in text
    assert "of a form that cannot be read" in text
    nothing = " ".join(Page(pages(facts.asked())[0]).text.split())
    assert "The model was asked nothing." in nothing and "Not measured." in nothing


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a\x1b[2Jb", "a\\u001b[2Jb"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("a\u202eb\ufeff\x85\ud800", "a\\u202eb\\ufeff\\u0085\\ud800"),
        ("Z\u00fcrich \u6771\u4eac \U0001f600", "Z\u00fcrich \u6771\u4eac \U0001f600"),
        (None, None),
        (1.5, 1.5),
    ],
)
def test_control_characters_are_shown_as_their_number(said: t.Any, shown: t.Any) -> None:
    assert render.clean(said) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "a_b __c__ *d* `e` <f> [g](h) | ~i~ $j$",
            "a_b \\_\\_c\\_\\_ \\*d\\* \\`e\\` \\<f\\> \\[g\\](h) \\| \\~i\\~ \\$j\\$",
        ),
        ("# one\n\n2. two", "\\# one 2. two"),
        ("1. one", "1\\. one"),
        ("580.105.08", "580.105.08"),
        ("-5 and -- x", "-5 and -- x"),
        ("- one", "\\- one"),
        ("&lt; & co", "\\&lt; & co"),
        (Markup("**made**"), "**made**"),
    ],
)
def test_markdown_says_just_these_characters(said: str, shown: str) -> None:
    assert render.markdown_text(said) == shown
