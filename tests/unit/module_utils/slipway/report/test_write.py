# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest
import report_facts as facts
from ansible.module_utils.slipway.report import chart, history, write


def days(folder: Path, *speeds: float | None) -> list[dict]:
    """A run a day with these speeds; returns the last report."""
    written: list[dict] = []
    for day, speed in enumerate(speeds, 1):
        gathered = facts.healthy(str(folder))
        gathered["acceptance"]["throughput"] = speed and {**facts.throughput(), "output_tokens_per_second": speed}
        run = facts.changed_run() if day == 1 else facts.run()
        written = write.reports({"infer1": gathered}, {**run, "began": f"2026-12-0{day}T10-00-00Z"})
    return written


def test_a_run_leaves_three_files_a_link_and_the_page_over_all_hosts(tmp_path: Path) -> None:
    report = write.reports({"infer1": facts.healthy(str(tmp_path))}, facts.run())[0]
    folder = tmp_path / "infer1/2026-12-01T16-00-00Z"
    assert sorted(one.name for one in folder.iterdir()) == ["report.html", "report.json", "report.md"]
    assert report["path"] == str(folder / "report.html")
    assert (tmp_path / "infer1/latest").readlink() == Path("2026-12-01T16-00-00Z")
    assert {one.name for one in tmp_path.iterdir()} == {"infer1", "index.html"}
    kept = json.loads((folder / "report.json").read_text())
    # Others read these.
    assert (kept["fit"], kept["vmid"], kept["acceptance"]["model"]) == (True, 101, "glm-5")
    assert all(one.stat().st_mode & 0o777 == 0o644 for one in folder.iterdir())


def test_the_history_has_date_verdict_speed_and_what_changed(tmp_path: Path) -> None:
    report = days(tmp_path, 41.0, None, 12.3, 44.8)[0]
    assert [(one["time"], one["verdict"], one["speed"], one["changed"]) for one in report["history"]] == [
        ("2026-12-03T10-00-00Z", "fit", 12.3, "nothing"),
        ("2026-12-02T10-00-00Z", "fit", None, "nothing"),
        ("2026-12-01T10-00-00Z", "fit", 41.0, "4: pve_host 2, gpu_container, inference_server"),
    ]
    html = Path(report["path"]).read_text()
    assert html.count("<rect ") == 3
    assert "the oldest first: 41.0, none, 12.3, 44.8" in html
    assert '<a href="../2026-12-03T10-00-00Z/report.html">' in html


def test_a_report_of_an_earlier_version_and_one_that_is_torn(tmp_path: Path) -> None:
    for name, text in (
        (
            "2026-11-01T10-00-00Z",
            '{"host": "infer1", "time": "2026-11-01T10-00-00Z", "fit": true, "acceptance": {"throughput": null}}',
        ),
        ("2026-11-02T10-00-00Z", '{"host": "infer1", "time": '),
        ("2026-11-03T10-00-00Z", "[]"),
    ):
        (tmp_path / "infer1" / name).mkdir(parents=True)
        (tmp_path / "infer1" / name / "report.json").write_text(text)
    (tmp_path / "infer1/2026-11-04T10-00-00Z").mkdir()
    report = write.reports({"infer1": facts.healthy(str(tmp_path))}, facts.run())[0]
    assert [(one["time"], one["verdict"], one["changed"]) for one in report["history"]] == [
        ("2026-11-01T10-00-00Z", "fit", None)
    ]


def test_the_history_ends_somewhere(tmp_path: Path) -> None:
    for day in range(30):
        folder = tmp_path / f"2026-11-{day + 1:02d}T10-00-00Z"
        folder.mkdir()
        (folder / "report.json").write_text(json.dumps({"host": "infer1", "time": folder.name, "fit": False}))
    found = history.read(tmp_path, "2026-12-01T10-00-00Z")
    assert len(found) == 20
    assert found[0]["time"] == "2026-11-30T10-00-00Z"


def test_the_page_over_all_hosts_knows_hosts_that_were_not_in_this_run(tmp_path: Path) -> None:
    write.reports({"infer1": facts.healthy(str(tmp_path))}, facts.run())
    run = facts.run(
        began="2026-12-02T10-00-00Z",
        failures={"infer 2#": ["Cannot reach it: <no answer>."], "pve1": ["Cannot do it."]},
    )
    write.reports({"infer 2#": facts.asked(str(tmp_path))}, run)
    page = (tmp_path / "index.html").read_text()
    assert "1 of 2" in page
    assert '<a href="infer1/latest/report.html">infer1</a>' in page
    assert '<a href="infer%202%23/latest/report.html">infer 2#</a>' in page
    assert "Cannot reach it: &lt;no answer&gt;." in page and "Cannot do it." in page


def test_a_folder_that_cannot_be_written_is_an_oserror(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(OSError):
        write.reports({"infer1": facts.healthy(str(tmp_path / "taken"))}, facts.run())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("answers", [{"x": 1}]),
        ("answers", "no list"),
        ("throughput", {"loads": [{"concurrency": 1, "errors": "x"}]}),
        ("links", {"state": "never heard of"}),
        ("links", {"state": "holds", "proven_at": "x", "age": "x", "result": {"pairs": "x", "plan": {"parts": ["x"]}}}),
        ("all_reduce", {"state": "holds", "proven_at": "x", "age": "x", "result": {"results": [1]}}),
        ("gpus", [1]),
    ],
)
def test_what_a_guest_keeps_in_another_form_costs_no_report(tmp_path: Path, key: str, value: object) -> None:
    gathered = facts.healthy(str(tmp_path))
    gathered["acceptance"][key] = value
    reports = write.reports(
        {"infer1": gathered, "infer2": facts.healthy(str(tmp_path))}, facts.run(failures={"infer1": ["Cannot do it."]})
    )
    assert [report["verdict"] for report in reports] == ["not fit", "fit"]
    assert reports[0]["vmid"] == 101
    assert "Cannot do it." in Path(reports[0]["path"]).read_text()


@pytest.mark.parametrize("values", [[], [1.0], [None, 1.0], [0.0, 0.0]])
def test_nothing_is_drawn_where_there_is_nothing_to_compare(values: list[float | None]) -> None:
    assert chart.bars(values, "x") == ""
