# SPDX-License-Identifier: GPL-3.0-or-later
"""The links as a matrix, for people: a heat map in HTML and the same in Markdown. Pure.

The shade of a cell goes from light to dark in one hue, so that it reads the same in grey and to any eye; each cell has its number,
and a fault stands there as a word. Rows send, columns receive.
"""

from __future__ import annotations

import html
import typing as t

Result = t.Mapping[str, t.Any]
# Which figures are shown, and whether more is better.
VIEWS = (
    ("write_gbps", "One way, pushed by the sender, GB/s", True),
    ("read_gbps", "One way, pulled by the receiver, GB/s", True),
    ("bidirectional_gbps", "Both ways at one time, sum, GB/s", True),
    ("latency_us", "A small copy, microseconds", False),
)
# By finding, the worst first.
WORDS = {
    "P2P_CORRUPT": "corrupt",
    "P2P_IMPLAUSIBLE": "implausible",
    "P2P_HUNG": "hung",
    "P2P_UNSUPPORTED": "no P2P",
    "P2P_MAP_FAILED": "not mapped",
    "P2P_TOO_MANY_PEERS": "too many peers",
    "P2P_ERROR": "error",
    "P2P_STAGED": "staged",
    "P2P_SLOW": "slow",
    "P2P_OUTLIER": "outlier",
    "P2P_BIDIRECTIONAL_LOW": "slow both ways",
}
_NOTHING = "not measured"
# The page that it stands in may bring colours of its own (--ink, --paper, --shade), such as for a dark screen.
_STYLE = """\
.p2p { font-family: system-ui, sans-serif; color: var(--ink, #111); background: var(--paper, #fff) }
.p2p table { border-collapse: collapse; margin: 0 0 1.5em }
.p2p caption { text-align: left; font-weight: 600; padding: .3em 0 }
.p2p th, .p2p td { border: 1px solid #777; padding: .35em .5em; text-align: center; font-variant-numeric: tabular-nums }
.p2p th { font-weight: 500; text-align: left }
.p2p td.fault { border: 3px double; font-weight: 700 }
.p2p td.none { font-style: italic }
.p2p td.self { background: var(--shade, #eee) }
.p2p small { display: block }
"""


def words(result: Result) -> dict[tuple[str, str], str]:
    """The word of each ordered pair that has a fault, the worst if it has several. Pairs are those that findings name."""
    found: dict[tuple[str, str], str] = {}
    for fault, word in WORDS.items():
        for told in result["findings"]:
            source, arrow, target = told["subject"].partition(" -> ")
            if told["id"] == fault and arrow and told["severity"] not in ("ok", "info"):
                found.setdefault((source, target), word)
    return found


def markdown(result: Result) -> str:
    """All views as tables, and the sets that ran at one time."""
    if not result["pairs"]:
        return "No pairs of GPUs were measured.\n"
    addresses, rows, marks = _addresses(result), _rows(result), words(result)
    parts = [_key_markdown(result)]
    for name, title, _more in _shown(result):
        parts += [f"**{title}**\n", "| from \\ to | " + " | ".join(_short(result, one) for one in addresses) + " |"]
        parts.append("|---|" + "---:|" * len(addresses))
        for source in addresses:
            cells = [_text(source, target, rows, marks, name) for target in addresses]
            parts.append(f"| {_short(result, source)} | " + " | ".join(cells) + " |")
        parts.append("")
    if result["concurrent"]:
        parts += ["**At one time, GB/s**\n", "| set | copies | together | ideal | ratio |", "|---|---:|---:|---:|---:|"]
        parts += ["| " + " | ".join(_set_cells(row)) + " |" for row in result["concurrent"]]
        parts.append("")
    return "\n".join(parts)


def fragment(result: Result) -> str:
    """The same as a piece of HTML that brings its style with it."""
    if not result["pairs"]:
        return '<div class="p2p"><p>No pairs of GPUs were measured.</p></div>\n'
    marks, rows = words(result), _rows(result)
    tables = [_table(result, rows, marks, *view) for view in _shown(result)]
    if result["concurrent"]:
        head = "".join(f'<th scope="col">{name}</th>' for name in ("set", "copies", "together", "ideal", "ratio"))
        lines = [
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _set_cells(row)) + "</tr>"
            for row in result["concurrent"]
        ]
        tables.append(
            f"<table><caption>At one time, GB/s</caption>\n<tr>{head}</tr>\n" + "\n".join(lines) + "\n</table>"
        )
    key = "".join(f"<li>{html.escape(line)}</li>" for line in _key(result))
    return f'<style>{_STYLE}</style>\n<div class="p2p">\n<ul>{key}</ul>\n' + "\n".join(tables) + "\n</div>\n"


def page(title: str, result: Result) -> str:
    """One page that needs nothing else."""
    head = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{html.escape(title)}</title></head>\n'
    )
    verdict = html.escape(str(result["verdict"] or "not measured").replace("_", " "))
    return f"{head}<body>\n<h1>{html.escape(title)}</h1>\n<p>Verdict: <b>{verdict}</b></p>\n{fragment(result)}</body>\n</html>\n"


def _table(
    result: Result, rows: t.Mapping[tuple[str, str], Result], marks: t.Mapping[tuple[str, str], str],
    name: str, title: str, more_is_better: bool,
) -> str:  # fmt: skip
    addresses = _addresses(result)
    values = [row[name] for row in rows.values() if row[name]]
    top = max(values, default=0)
    scale = "darker is faster" if more_is_better else "darker is slower"
    lines = [f"<table><caption>{html.escape(title)} ({scale})</caption>"]
    heads = "".join(f'<th scope="col">{html.escape(_short(result, one))}</th>' for one in addresses)
    lines.append(f'<tr><th scope="col">from \\ to</th>{heads}</tr>')
    for source in addresses:
        cells = [_cell(source, target, rows, marks, name, top) for target in addresses]
        lines.append(f'<tr><th scope="row">{html.escape(_short(result, source))}</th>{"".join(cells)}</tr>')
    return "\n".join([*lines, "</table>"])


def _cell(
    source: str, target: str, rows: t.Mapping[tuple[str, str], Result], marks: t.Mapping[tuple[str, str], str],
    name: str, top: float,
) -> str:  # fmt: skip
    if source == target:
        return '<td class="self"></td>'
    value, mark = rows[(source, target)][name], marks.get((source, target))
    text = f"{value:.1f}" if value is not None else _NOTHING
    shown = text + (f"<small>{html.escape(mark)}</small>" if mark else "")
    kind = "fault" if mark else "none" if value is None else ""
    return f'<td class="{kind}"{_shade(value, top)}>{shown}</td>'


def _shade(value: float | None, top: float) -> str:
    """Light to dark, the figure white on the dark half: a contrast of at least 4.5 everywhere."""
    if not value or not top:
        return ""
    lightness = 95 - round(65 * min(value / top, 1.0))
    return f' style="background: hsl(210, 60%, {lightness}%); color: {"#fff" if lightness < 47 else "#000"}"'


def _text(
    source: str,
    target: str,
    rows: t.Mapping[tuple[str, str], Result],
    marks: t.Mapping[tuple[str, str], str],
    name: str,
) -> str:
    if source == target:
        return ""
    value, mark = rows[(source, target)][name], marks.get((source, target))
    return (f"{value:.1f}" if value is not None else _NOTHING) + (f" **{mark}**" if mark else "")


def _shown(result: Result) -> list[tuple[str, str, bool]]:
    """Views of which there is anything; if there is nothing at all the first, in which faults are told."""
    found = [view for view in VIEWS if any(row[view[0]] is not None for row in result["pairs"])]
    return found or [VIEWS[0]]


def _addresses(result: Result) -> list[str]:
    return sorted({row["source"] for row in result["pairs"]})


def _rows(result: Result) -> dict[tuple[str, str], Result]:
    return {(row["source"], row["target"]): row for row in result["pairs"]}


def _short(result: Result, address: str) -> str:
    return address[5:] if all(one.startswith("0000:") for one in _addresses(result)) else address


def _key(result: Result) -> list[str]:
    names = {gpu["bus_id"]: gpu["name"] or "GPU" for gpu in result["gpus"]}
    return [f"{_short(result, address)}: {names.get(address, 'GPU')}" for address in _addresses(result)]


def _key_markdown(result: Result) -> str:
    return "\n".join(f"- {line}" for line in _key(result)) + "\n"


def _set_cells(row: Result) -> list[str]:
    name = f"{row['kind'].replace('_', ' ')}, {row['name']}"
    if row["error"]:
        return [name, str(len(row["flows"])), row["error"]["kind"], "", ""]
    figures = [_NOTHING if row[key] is None else f"{row[key]:.1f}" for key in ("gbps", "ideal_gbps")]
    return [name, str(len(row["flows"])), *figures, "" if row["ratio"] is None else f"{row['ratio']:.2f}"]
