# SPDX-License-Identifier: GPL-3.0-or-later
"""The role model_store over a node that is this machine: from a hub on the loopback, from a folder, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
import yaml
from evaluate import evaluate
from hub_server import HubServer, Repository
from weights import tensors

NAME, COMMIT = "someone/Model-NVFP4", "1" * 40
FILES = {"config.json": b"{}", "model.safetensors": tensors(a=1000)}
TOKEN = "hf_verysecret"


class Play:
    """Runs the role, or a part of it, for a guest of a node; what downloads is this interpreter."""

    def __init__(self, folder: Path, root: Path, hub: HubServer) -> None:
        self.folder, self.models = folder, folder / "models"
        self.source: dict[str, t.Any] = {}
        self.model = {"name": "tiny", "repository": NAME, "revision": COMMIT, "path": "tiny-nvfp4"}
        (folder / "ansible.cfg").touch()
        (folder / "catalog" / "tiny").mkdir(parents=True)
        self.variables = {
            "slipway_catalog": [str(folder / "catalog")],
            "model_store_directory": str(self.models),
            "model_store_hub_endpoint": hub.endpoint,
            "model_store_hub_token": TOKEN,
            # Of the node: what the role would install there, and the folder of certificates.
            "__model_store_hub": sys.prefix,
            "__model_store_downloads": False,
        }
        paths = {"ROLES_PATH": "roles", "LIBRARY": "library", "MODULE_UTILS": "module_utils"}
        plugins = {"ACTION_PLUGINS": "action_plugins", "CALLBACK_PLUGINS": "callback_plugins"}
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("ANSIBLE_") and "proxy" not in name.lower()
            },
            **{f"ANSIBLE_{name}": str(root / path) for name, path in {**paths, **plugins}.items()},
            "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_REMOTE_TMP": str(folder / "remote"),
            "ANSIBLE_STDOUT_CALLBACK": "slipway",
            "HOME": str(folder),
        }

    def __call__(self, part: str, *options: str, guests: str = "infer1") -> tuple[int, str]:
        """Exit code and what was printed."""
        profile = {
            "name": "tiny",
            "engine": "sglang",
            "model": {**self.model, **({"source": self.source} if self.source else {})},
        }
        (self.folder / "catalog" / "tiny" / "profile.yml").write_text(yaml.safe_dump(profile))
        local = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
        (self.folder / "hosts").write_text(
            "".join(f"{guest} {local} gpu_container_node=pve1 profile=tiny\n" for guest in ("infer1", "infer2"))
            + f"pve1 {local}\n"
        )
        task = {"name": "Part", "ansible.builtin.include_role": {"name": "model_store", "tasks_from": part}}
        play = {"name": "Play", "hosts": guests, "gather_facts": False, "tasks": [task]}
        (self.folder / "play.yml").write_text(json.dumps([play]))
        program = str(Path(sys.executable).parent / "ansible-playbook")
        done = subprocess.run(
            [program, "-i", "hosts", "play.yml", "-e", json.dumps(self.variables), *options],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    def content(self) -> dict[str, bytes]:
        """What a guest would find."""
        folder = self.models / "tiny-nvfp4"
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".slipway.json"}


@pytest.fixture
def hub() -> t.Iterator[HubServer]:
    server = HubServer()
    server.repositories[NAME] = Repository({COMMIT: FILES}, {"main": COMMIT}, gated=TOKEN)
    yield server
    server.close()


@pytest.fixture
def play(tmp_path: Path, root: Path, hub: HubServer) -> Play:
    if os.geteuid() != 0:
        pytest.skip("its folders belong to root")
    return Play(tmp_path, root, hub)


def test_two_guests_fetch_once_and_the_token_is_shown_nowhere(play: Play, hub: HubServer) -> None:
    code, said = play("main", "--check")
    assert (code, "Would fetch 2 files of someone/Model-NVFP4, 0.0 GB." in said) == (0, True), said
    assert not play.models.exists()
    hub.asked.clear()
    code, said = play("main", "-vvv", guests="infer1,infer2")
    assert code == 0, said
    assert play.content() == FILES
    assert sorted(hub.fetched()) == ["config.json", "model.safetensors", "model.safetensors"]  # once, by a redirect
    assert TOKEN not in said
    assert all(TOKEN.encode() not in path.read_bytes() for path in play.models.rglob("*") if path.is_file())
    hub.asked.clear()
    code, said = play("main")
    assert (code, "changed=0" in said, hub.asked) == (0, True, []), said


def test_from_a_folder_of_the_node_and_damage_is_told_and_mended(play: Play, hub: HubServer) -> None:
    disk = play.folder / "disk"
    disk.mkdir()
    for name, content in FILES.items():
        (disk / name).write_bytes(content)
    play.source = {"folder": {"path": str(disk)}}
    code, said = play("main")
    assert (code, play.content(), hub.asked) == (0, FILES, []), said
    weights = play.models / "tiny-nvfp4" / "model.safetensors"
    os.truncate(weights, 500)
    code, said = play("verify")
    words = f"Cannot verify the weights of 'infer1' on pve1: MODEL_FILE_DAMAGED, {weights}: "
    assert (code, words in said) == (2, True), said
    assert play("main")[0] == 0
    assert play.content() == FILES


def test_from_a_folder_of_the_controller(play: Play, hub: HubServer) -> None:
    disk = play.folder / "disk"
    disk.mkdir()
    for name, content in FILES.items():
        (disk / name).write_bytes(content)
    play.source = {"folder": {"path": str(disk), "host": "controller"}}
    code, said = play("main")
    assert (code, play.content(), hub.asked) == (0, FILES, []), said
    assert sorted(path.name for path in (play.models / ".slipway" / "tiny-nvfp4").iterdir()) == ["lock"]
    weights = play.models / "tiny-nvfp4" / "model.safetensors"
    before = (play.models / "tiny-nvfp4" / "config.json").stat().st_ino
    os.truncate(weights, 500)
    code, said = play("main")
    assert (code, play.content()) == (0, FILES), said
    assert (play.models / "tiny-nvfp4" / "config.json").stat().st_ino == before


def test_what_the_hub_refuses_is_known_before(play: Play) -> None:
    play.model["revision"] = "v9"
    code, said = play("preflight")
    assert (code, "it has no revision 'v9'. Correct model.revision in the profile" in said) == (2, True), said
    assert not play.models.exists()


@pytest.mark.parametrize(
    ("model", "source", "words"),
    [
        ({}, {}, None),
        ({}, {"hub": None}, None),
        ({}, {"folder": {"path": "/disk"}}, None),
        ({}, {"ftp": {}}, "Slipway cannot fetch from the source in profile 'tiny'. Give it model.source.hub"),
        (
            {},
            {"hub": {}, "wheel": {}},
            "Slipway cannot fetch from the source in profile 'tiny'. Give it model.source.hub",
        ),
        ({"repository": None}, {}, "Slipway cannot fetch from the source in profile 'tiny'. Give it model.source.hub"),
        ({"path": None}, {}, "names no repository and path"),
        ({"path": "a/b"}, {}, "model.path is 'a/b', which is no name of a folder"),
        ({}, {"folder": {"path": "disk"}}, "the folder that it comes from has no absolute path"),
    ],
)
def test_what_a_profile_must_say(
    root: Path, model: dict[str, t.Any], source: dict[str, t.Any], words: str | None
) -> None:
    given = {"name": "tiny", "repository": NAME, "path": "tiny-nvfp4", "source": source, **model}
    given = {name: value for name, value in given.items() if value is not None}
    variables = {"profile": "tiny", "slipway_profile": {"model": given}, "model_store_source": {}}
    found = evaluate("{{ __model_store_wrong }}", variables, root / "roles/model_store")
    assert found == [] if words is None else words in found[0]


def test_guests_of_a_node_want_one_revision_in_a_folder(root: Path) -> None:
    def guest(node: str, path: str, revision: str) -> dict[str, t.Any]:
        return {
            "gpu_container_node": node,
            "slipway_profile": {"model": {"repository": NAME, "path": path, "revision": revision}},
        }

    hosts = {
        "infer1": guest("pve1", "tiny", "v1"),
        "infer2": guest("pve1", "tiny", "v2"),
        "infer3": guest("pve2", "tiny", "v2"),
        "infer4": guest("pve1", "other", "v2"),
        "infer5": guest("pve1", "tiny", "v1"),
        "infer6": {"gpu_container_node": "pve1"},
    }
    variables = {
        **hosts["infer1"],
        "hostvars": hosts,
        "ansible_play_hosts_all": list(hosts),
        "model_store_node": "pve1",
    }
    found = evaluate("{{ __model_store_rivals }}", variables, root / "roles/model_store")
    assert found == [f"infer2 ({NAME} at v2)"]
