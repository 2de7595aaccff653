# SPDX-License-Identifier: GPL-3.0-or-later
"""model_files_info, driven through main() over folders that model_files made from a folder."""

from __future__ import annotations

import hashlib
import json
import os
import typing as t
from pathlib import Path

import pytest
from ansible.modules import model_files, model_files_info
from weights import tensors

Run = t.Callable[..., dict[str, t.Any]]
NAME = "someone/Model"


class Store:
    """A source, the folder of the store, and both modules."""

    def __init__(self, root: Path, run_module: Run) -> None:
        self.source, self.folder, self._run_module = root / "usb", root / "models" / "tiny", run_module
        (self.source / "encoding").mkdir(parents=True)
        (self.source / "config.json").write_text("{}")
        (self.source / "encoding" / "vocabulary.txt").write_text("one")
        (self.source / "model.safetensors").write_bytes(tensors(a=1000))

    def keep(self, **arguments: t.Any) -> dict[str, t.Any]:
        given = {"path": str(self.folder), "repository": NAME, "revision": "v1", "folder": str(self.source)}
        return self._run_module(model_files, given | arguments)

    def look(self, **arguments: t.Any) -> list[tuple[str, str]]:
        """Findings as id and detail."""
        given = {"path": str(self.folder), "repository": NAME, "revision": "v1"}
        result = self._run_module(model_files_info, given | arguments)
        assert (result["rc"], result["changed"]) == (0, False)
        return [(found["id"], found["detail"]) for found in result["findings"]]


@pytest.fixture
def store(tmp_path: Path, run_module: Run) -> Store:
    made = Store(tmp_path, run_module)
    assert made.keep()["finished"] is True
    return made


def test_one_that_is_whole(store: Store, run_module: Run) -> None:
    assert store.look() == store.look(verify="full") == []
    told = run_module(model_files_info, {"path": str(store.folder), "repository": NAME, "revision": "v1"})["model"]
    assert (told["repository"], told["revision"], told["files"]) == (NAME, "v1", 3)
    assert told["size_bytes"] == sum(path.stat().st_size for path in store.source.rglob("*") if path.is_file())


def test_damaged_and_missing(store: Store) -> None:
    (store.folder / "encoding" / "vocabulary.txt").unlink()
    weights = store.folder / "model.safetensors"
    weights.chmod(0o644)
    os.truncate(weights, 1000)
    assert store.look() == [
        ("MODEL_FILE_MISSING", "it is not there"),
        ("MODEL_FILE_DAMAGED", f"it has 1000 bytes, and {len(tensors(a=1000))} are right"),
    ]


def test_other_bytes_of_the_same_size_and_time(store: Store) -> None:
    weights = store.folder / "model.safetensors"
    stat = weights.stat()
    weights.chmod(0o644)
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert store.look() == []
    ((fault, words),) = store.look(verify="full")
    assert (fault, words.startswith("its sha256 ")) == ("MODEL_FILE_DAMAGED", True)


def test_another_revision_another_repository_and_none(store: Store, tmp_path: Path) -> None:
    commit = json.loads((store.folder / ".slipway.json").read_text())["commit"]
    held = f"it holds {NAME} at v1 ({commit}), and the profile names"
    assert store.look(revision="v2") == [("MODEL_REVISION_OTHER", f"{held} {NAME} at v2")]
    assert store.look(repository="someone/Other") == [("MODEL_REVISION_OTHER", f"{held} someone/Other at v1")]
    assert store.look(revision=commit) == []
    (store.folder / ".slipway.json").unlink()
    assert store.look()[0][0] == "MODEL_REVISION_OTHER"
    assert store.look(path=str(tmp_path / "none")) == [("MODEL_FILE_MISSING", "the folder of the model is not there")]


def test_what_nobody_knows_is_told(store: Store) -> None:
    (store.folder / "hf_quant_config.json").write_text("{}")
    assert store.look() == [("MODEL_FILE_UNKNOWN", "hf_quant_config.json")]


def test_files_by_their_hashes(store: Store, run_module: Run) -> None:
    right = hashlib.sha256(tensors(a=1000)).hexdigest()
    arguments = {
        "path": str(store.folder),
        "sha256": {"model.safetensors": right, "config.json": "0" * 64, "x.gguf": right},
    }
    findings = run_module(model_files_info, arguments)["findings"]
    assert [(found["id"], Path(found["subject"]).name) for found in findings] == [
        ("MODEL_FILE_DAMAGED", "config.json"),
        ("MODEL_FILE_MISSING", "x.gguf"),
    ]


def test_a_source_that_changed_is_copied_beside(store: Store) -> None:
    assert store.keep()["changed"] is False
    (store.source / "config.json").write_text('{"new": 1}')
    again = store.keep()
    assert (again["changed"], [one["path"] for one in again["files"]]) == (True, ["config.json"])
    assert (store.folder / "config.json").read_text() == '{"new": 1}'
    assert [found["id"] for found in again["findings"]] == ["MODEL_REVISION_KEPT"]
    assert (store.folder / "config.json").stat().st_mtime_ns == (store.source / "config.json").stat().st_mtime_ns


def test_a_source_that_is_gone_is_missed_only_where_it_is_needed(store: Store) -> None:
    store.source.rename(store.source.with_name("elsewhere"))
    assert store.keep()["changed"] is False
    failed = store.keep(revision="v2")
    assert (failed["rc"], failed["findings"][0]["id"]) == (1, "MODEL_SOURCE_MISSING")
    (store.folder / "config.json").unlink()
    failed = store.keep()
    assert (failed["rc"], failed["findings"][0]["id"]) == (1, "MODEL_SOURCE_MISSING")
    store.source.with_name("elsewhere").rename(store.source)
    assert store.keep()["changed"] is True


def test_a_torn_source_reaches_no_server(store: Store) -> None:
    weights = store.source / "model.safetensors"
    os.truncate(weights, 900)
    failed = store.keep()
    assert (failed["rc"], failed["findings"][0]["id"]) == (1, "MODEL_FILE_DAMAGED")
    assert "model.safetensors: it is torn" in failed["msg"]
    assert store.look() == []
