# SPDX-License-Identifier: GPL-3.0-or-later
"""model_files, driven through main() with the real huggingface_hub against a hub on the loopback."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import typing as t
from pathlib import Path

import package_servers
import pytest
from ansible.modules import model_files
from hub_server import HubServer, Repository
from weights import tensors

Run = t.Callable[..., dict[str, t.Any]]
NAME = "someone/Model-NVFP4"
FIRST, SECOND = "1" * 40, "2" * 40
ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


def revision(**changes: bytes) -> dict[str, bytes]:
    """The files of a small model in two shards."""
    table = {"weight_map": {"a": ONE, "b": TWO}}
    files = {
        "config.json": b'{"model_type": "tiny"}',
        ".gitattributes": b"*.safetensors filter=lfs\n",
        "encoding/vocabulary.txt": b"one\ntwo\n",
        INDEX: json.dumps(table).encode(),
        ONE: tensors(a=600_000),
        TWO: tensors(b=400_000),
    }
    return {**files, **{name.replace("__", "."): content for name, content in changes.items()}}


class Store:
    """A hub with one repository, and the folder that keeps it."""

    def __init__(self, root: Path, run_module: Run) -> None:
        self.root, self._run_module = root, run_module
        self.hub = HubServer()
        self.repository = Repository({FIRST: revision()}, {"main": FIRST})
        self.hub.repositories[NAME] = self.repository

    @property
    def folder(self) -> Path:
        return self.root / "models" / "tiny"

    @property
    def work(self) -> Path:
        return self.root / "models" / ".slipway" / "tiny"

    def run(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        """Keep it; what the hub was asked before is forgotten."""
        self.hub.asked.clear()
        given = {"path": str(self.folder), "repository": NAME, "revision": FIRST, "endpoint": self.hub.endpoint}
        return self._run_module(model_files, given | {"python": sys.executable} | arguments, check)

    def content(self) -> dict[str, bytes]:
        """Files of the folder by path, without the record."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and path.name != ".slipway.json"]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def inodes(self) -> dict[str, int]:
        """Their inodes."""
        return {path: (self.folder / path).stat().st_ino for path in self.content()}


@pytest.fixture
def store(tmp_path: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Store]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Store(tmp_path, run_module)
    yield made
    made.hub.close()


def ids(result: dict[str, t.Any]) -> list[str]:
    return [found["id"] for found in result["findings"]]


def wanted(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in files.items() if path != ".gitattributes"}


def test_it_is_fetched_once(store: Store) -> None:
    first = store.run()
    assert (first["rc"], first.get("msg"), first["changed"], first["finished"]) == (0, None, True, True)
    assert (first["commit"], first["left_bytes"], first["findings"]) == (FIRST, 0, [])
    assert store.content() == wanted(revision())
    assert {path.stat().st_mode & 0o777 for path in store.folder.rglob("*") if path.is_file()} == {0o444}
    assert {path.stat().st_mode & 0o777 for path in (store.folder, store.folder / "encoding")} == {0o755}
    before = store.inodes()
    again = store.run()
    assert (again["rc"], again["changed"], again["finished"], again["files"]) == (0, False, True, [])
    assert store.hub.asked == []
    assert store.inodes() == before
    assert sorted(path.name for path in store.work.iterdir()) == ["lock"]


def test_check_mode_tells_and_writes_nothing(store: Store) -> None:
    told = store.run(check=True)
    assert (told["rc"], told["changed"], told["finished"]) == (0, True, False)
    assert told["left_bytes"] == told["total_bytes"] == sum(map(len, wanted(revision()).values()))
    assert [file["path"] for file in told["files"]] == sorted(wanted(revision()))
    assert f"{ONE}: it is not there\n" in told["diff"][0]["before"]
    assert list(store.root.iterdir()) == []
    assert store.hub.fetched() == []
    store.run()
    assert store.run(check=True)["changed"] is False


def test_a_cut_connection_is_gone_on_with_by_the_library(store: Store) -> None:
    store.hub.cut = {ONE: 300_000}
    assert store.run()["finished"] is True
    assert [one.range for one in store.hub.asked if one.server == "files" and ONE in one.path] == [
        "",
        "bytes=262144-",
    ]  # whole chunks
    assert store.content() == wanted(revision())


def test_what_had_come_is_gone_on_with_by_the_next_run(store: Store) -> None:
    digest = hashlib.sha256(revision()[ONE]).hexdigest()
    part = store.work / "parts" / hashlib.sha256(f"sha256:{digest}".encode()).hexdigest()[:32]
    part.parent.mkdir(parents=True)
    part.write_bytes(revision()[ONE][:500_000])
    told = store.run(check=True)
    assert told["left_bytes"] == told["total_bytes"] - 500_000
    assert store.run()["finished"] is True
    assert [one.range for one in store.hub.asked if one.server == "files" and ONE in one.path] == ["bytes=500000-"]
    assert store.content() == wanted(revision())


def test_a_server_without_ranges_sends_all_of_it(store: Store) -> None:
    store.hub.ranges = False
    store.hub.cut = {ONE: 300_000}
    assert store.run()["finished"] is True
    assert store.content() == wanted(revision())


@pytest.mark.parametrize("path", [ONE, "config.json", "encoding/vocabulary.txt"])
def test_a_damaged_file_is_fetched_again_alone(store: Store, path: str) -> None:
    store.run()
    before = store.inodes()
    file = store.folder / path
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1])
    told = store.run(check=True)
    assert [(one["path"], one["fault"][:6]) for one in told["files"]] == [(path, "it has")]
    again = store.run()
    assert (again["changed"], again["finished"]) == (True, True)
    assert store.hub.fetched() == ([path, path] if path == ONE else [path])  # a large one by a redirect
    assert store.content() == wanted(revision())
    after = store.inodes()
    assert {name for name in after if after[name] != before[name]} == {path}


def test_a_missing_file_is_fetched_alone(store: Store) -> None:
    store.run()
    (store.folder / TWO).unlink()
    assert store.run()["changed"] is True
    assert set(store.hub.fetched()) == {TWO}
    assert store.content() == wanted(revision())


def test_bytes_that_changed_in_place_are_found_by_a_full_look(store: Store) -> None:
    store.run()
    file = store.folder / ONE
    stat = file.stat()
    file.chmod(0o644)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert store.run()["changed"] is False
    told = store.run(check=True, verify="full")
    assert [one["path"] for one in told["files"]] == [ONE]
    assert told["files"][0]["fault"].startswith("its sha256 ")
    assert store.run(verify="full")["changed"] is True
    assert store.content() == wanted(revision())
    assert store.run(verify="full")["changed"] is False


def test_looking_touches_nothing_that_a_server_watches(store: Store) -> None:
    store.run()
    before = store.folder.stat().st_ctime_ns
    assert [store.run(verify=how)["changed"] for how in ("quick", "full")] == [False, False]
    assert store.folder.stat().st_ctime_ns == before


def test_another_time_is_no_damage(store: Store) -> None:
    store.run()
    os.utime(store.folder / ONE)
    again = store.run()
    assert (again["changed"], store.hub.asked) == (False, [])
    record = json.loads((store.folder / ".slipway.json").read_text())
    assert record["known"][ONE]["mtime_ns"] == (store.folder / ONE).stat().st_mtime_ns


def test_what_comes_damaged_reaches_no_server(store: Store) -> None:
    store.hub.damaged = {TWO}
    failed = store.run()
    assert (failed["rc"], ids(failed)) == (1, ["MODEL_FILE_DAMAGED"])
    assert failed["msg"].startswith(f"Cannot fetch model '{NAME}' on ")
    assert f"{TWO}: what came is not what the hub tells: its sha256 " in failed["msg"]
    assert not store.folder.exists()
    store.hub.damaged = set()
    assert store.run()["finished"] is True
    assert TWO in store.hub.fetched()
    assert store.content() == wanted(revision())


@pytest.mark.parametrize(
    ("changes", "finding", "words"),
    [
        ({TWO: tensors(b=400_000)[:-5]}, "MODEL_FILE_DAMAGED", f"{TWO}: it is torn: its tensors take 400000 bytes"),
        ({TWO: tensors(c=400_000)}, "MODEL_INDEX_WRONG", f"b is not in {TWO}"),
        ({INDEX: b'{"weight_map": {"a": "other.safetensors"}}'}, "MODEL_FILE_MISSING", "names it for one tensor"),
    ],
)
def test_what_was_published_unsound_reaches_no_server(
    store: Store, changes: dict[str, bytes], finding: str, words: str
) -> None:
    self_consistent = {**revision(), **changes}
    store.repository.commits[FIRST] = self_consistent
    failed = store.run()
    assert (failed["rc"], ids(failed)[0]) == (1, finding)
    assert words in failed["msg"]
    assert not store.folder.exists()


def test_another_revision_is_fetched_beside_and_what_is_equal_is_linked(store: Store) -> None:
    store.run()
    old = store.inodes()
    store.repository.commits[SECOND] = {**revision(), TWO: tensors(b=400_000, extra=1)}
    told = store.run(check=True, revision=SECOND)
    assert [one["path"] for one in told["files"]] == [TWO]
    changed = store.run(revision=SECOND)
    assert (changed["rc"], changed["commit"], changed["finished"]) == (0, SECOND, True)
    assert set(store.hub.fetched()) == {TWO}
    assert store.content() == wanted(store.repository.commits[SECOND])
    assert {path for path, inode in store.inodes().items() if old[path] != inode} == {TWO}
    kept = next(found for found in changed["findings"] if found["id"] == "MODEL_REVISION_KEPT")
    assert f"{store.work / FIRST} (of before) takes 39" in kept["detail"]
    assert (store.work / FIRST / TWO).read_bytes() == revision()[TWO]
    # Going back fetches nothing.
    back = store.run(revision=FIRST)
    assert (back["changed"], back["finished"], store.hub.fetched()) == (True, True, [])
    assert store.content() == wanted(revision())
    assert store.run(revision=FIRST)["changed"] is False


def test_a_run_that_was_killed_between_two_renames_is_completed(store: Store) -> None:
    store.repository.commits[SECOND] = {**revision(), TWO: tensors(b=400_000, extra=1)}
    store.run()
    store.run(revision=SECOND)
    store.folder.rename(store.work / SECOND)
    again = store.run(revision=SECOND)
    assert (again["changed"], again["finished"], store.hub.fetched()) == (True, True, [])
    assert store.content() == wanted(store.repository.commits[SECOND])
    assert (store.work / FIRST / TWO).read_bytes() == revision()[TWO]


def test_a_record_that_was_lost_costs_hashing_and_no_download(store: Store) -> None:
    store.run()
    before = store.inodes()
    (store.folder / ".slipway.json").unlink()
    again = store.run()
    assert (again["finished"], again["files"], store.hub.fetched()) == (True, [], [])
    assert store.inodes() == before
    assert store.run()["changed"] is False


def test_by_a_proxy(store: Store) -> None:
    proxy = package_servers.proxy(login="user:secret")
    try:
        way = {"proxy": proxy.address, "proxy_login": "user:secret", "include": ["config.json"]}
        result = store.run(**way)
        assert (result["rc"], result["finished"]) == (0, True), result
        assert store.content() == {"config.json": revision()["config.json"]}
        assert any("/resolve/" in path for path in proxy.asked) and any("/revision/" in path for path in proxy.asked)
        failed = store.run(**{**way, "revision": "main", "proxy_login": "user:wrong"})
    finally:
        proxy.close()
    assert (failed["rc"], ids(failed)) == (1, ["PROXY_REFUSED"])


def test_a_branch_is_resolved_once(store: Store) -> None:
    first = store.run(revision="main")
    assert (first["commit"], ids(first)) == (FIRST, ["MODEL_REVISION_MOVES"])
    assert first["findings"][0]["detail"] == f"'main' came to {FIRST}"
    store.repository.commits[SECOND] = revision()
    store.repository.branches["main"] = SECOND
    again = store.run(revision="main")
    assert (again["changed"], again["commit"], store.hub.asked) == (False, FIRST, [])


def test_only_the_files_that_are_wanted(store: Store) -> None:
    result = store.run(include=["*.json", "*.txt"], exclude=["*.index.json"])
    assert result["finished"] is True
    assert sorted(store.content()) == ["config.json", "encoding/vocabulary.txt"]
    more = store.run(include=["*.json", "*.txt", "*.safetensors"])
    assert (more["changed"], set(store.hub.fetched())) == (True, {INDEX, ONE, TWO})


def test_a_slice_ends_and_the_next_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, *[2.0] * 10_000])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    first = store.run(slice_seconds=1)
    assert (first["rc"], first["finished"], first["changed"]) == (0, False, True)
    assert first["left_bytes"] == first["total_bytes"]
    assert not store.folder.exists()
    monkeypatch.undo()
    second = store.run()
    assert (second["finished"], second["left_bytes"]) == (True, 0)
    assert store.content() == wanted(revision())


def test_a_token_goes_to_the_hub_alone(store: Store) -> None:
    store.repository.gated = store.hub.token = "hf_secret"
    assert store.run(token="hf_secret")["finished"] is True
    assert {one.token for one in store.hub.asked if one.server == "hub"} == {"hf_secret"}
    assert {one.token for one in store.hub.asked if one.server == "files"} == {""}
    for path in [*store.work.rglob("*"), store.folder / ".slipway.json"]:
        assert path.is_dir() or b"hf_secret" not in path.read_bytes()


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("arguments", "gated", "finding", "words"),
    [
        ({"repository": "someone/Other"}, "", "MODEL_REPOSITORY_UNKNOWN", "it is not there, or is private (401)"),
        (
            {"repository": "someone/Other", "token": "hf_other"},
            "",
            "MODEL_REPOSITORY_UNKNOWN",
            "it is not there, or the token's account may not",
        ),
        ({"revision": "v9"}, "", "MODEL_REVISION_UNKNOWN", "it has no revision 'v9'"),
        ({}, "hf_right", "MODEL_ACCESS_DENIED", "gated, and no token is given (401)"),
        (
            {"token": "hf_other"},
            "hf_right",
            "MODEL_ACCESS_DENIED",
            "gated, and the account of the token has no access to it (403)",
        ),
        ({"endpoint": "http://127.0.0.1:9"}, "", "HUB_UNREACHABLE", "connection refused"),
    ],
)
def test_what_the_hub_refuses_is_one_sentence(
    store: Store, check: bool, arguments: dict[str, t.Any], gated: str, finding: str, words: str
) -> None:
    store.repository.gated = gated
    failed = store.run(check, **arguments)
    assert (failed["rc"], ids(failed)) == (1, [finding])
    assert words in failed["msg"]
    assert failed["msg"].endswith(failed["findings"][0]["remedy"].rstrip(".") + ".")
    assert not store.folder.exists()


def test_a_token_that_the_hub_does_not_know(store: Store) -> None:
    store.hub.token = "right"
    failed = store.run(check=True, token="wrong")
    assert (ids(failed), "the hub does not know the token (401)" in failed["msg"]) == (["MODEL_ACCESS_DENIED"], True)


def test_a_hub_that_is_ill(store: Store) -> None:
    store.hub.status = 503
    failed = store.run(check=True)
    assert (ids(failed), "it answers 503 Service Unavailable" in failed["msg"]) == (["HUB_UNREACHABLE"], True)


def test_a_mirror_that_lists_what_it_does_not_have(store: Store) -> None:
    store.hub.gone = {"config.json"}  # which is not the one that is asked for beforehand
    failed = store.run()
    assert (failed["rc"], ids(failed)) == (1, ["MODEL_MIRROR_INCOMPLETE"])
    assert "the hub answers 404 EntryNotFound; 0 bytes of 22 bytes of config.json are there" in failed["msg"]


def test_a_repository_that_was_renamed(store: Store) -> None:
    store.hub.repositories["someone/Old"] = Repository({}, renamed=NAME)
    store.hub.token = store.repository.gated = "hf_right"
    assert store.run(repository="someone/Old", token="hf_right")["finished"] is True


def test_no_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    free = os.statvfs_result((4096, 4096, 1000, 200, 200, 100, 100, 100, 0, 255))
    monkeypatch.setattr("os.statvfs", lambda path: free)
    for check in (True, False):
        failed = store.run(check)
        assert (failed["rc"], ids(failed)) == (1, ["MODEL_STORE_FULL"])
        assert "has 800.0 KiB free, and 976." in failed["msg"]
        assert store.hub.fetched() == []


def test_a_folder_that_somebody_made_is_taken_over(store: Store) -> None:
    store.folder.mkdir(parents=True)
    for path in ("config.json", ONE):
        (store.folder / path).write_bytes(revision()[path])
    (store.folder / "notes.txt").write_text("mine")
    before = store.inodes()
    result = store.run()
    assert (result["finished"], ids(result)) == (True, ["MODEL_FILE_UNKNOWN"])
    assert {ONE, "config.json"}.isdisjoint(store.hub.fetched())
    assert {path: inode for path, inode in store.inodes().items() if path in before} == before
    assert store.run()["changed"] is False


@pytest.mark.parametrize("check", [True, False])
def test_a_folder_of_somebody_with_other_files_is_left_alone(store: Store, check: bool) -> None:
    store.folder.mkdir(parents=True)
    (store.folder / "config.json").write_bytes(b"{}")
    failed = store.run(check)
    assert (failed["rc"], ids(failed)) == (1, ["MODEL_STORE_FOREIGN"])
    assert "config.json: it has 2 bytes, and 22 are right" in failed["msg"]
    assert store.content() == {"config.json": b"{}"}


def test_an_environment_without_the_library(store: Store) -> None:
    failed = store.run(python="/usr/bin/false")
    assert (failed["rc"], "the program that downloads ended with 1" in failed["msg"]) == (1, True)
    failed = store.run(python="/nowhere/python")
    assert (failed["rc"], "/nowhere/python: No such file or directory" in failed["msg"]) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"repository": "model"}, "'model' is no repository, which has the form owner/name"),
        ({"parallel": 0}, "parallel is 0, and 1 to 64 files"),
        ({"include": ["*.gguf"]}, "it has no file that matches *.gguf"),
    ],
)
def test_what_cannot_be_asked_for(store: Store, arguments: dict[str, t.Any], words: str) -> None:
    failed = store.run(**arguments)
    assert (failed["rc"], words in failed["msg"]) == (1, True)


def test_a_hub_that_names_a_file_outside(store: Store) -> None:
    store.repository.commits[FIRST]["../outside"] = b"x"
    failed = store.run()
    assert (failed["rc"], "'../outside', which would lie outside" in failed["msg"]) == (1, True)
