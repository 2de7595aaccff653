# SPDX-License-Identifier: GPL-3.0-or-later
"""Each profile's environment, built from its lock, and the parser of the engine in it: the shipped tables, and the command lines.

Each stack is a download of 5 GB and 10 GB on disk while it is looked at. ``make test-full`` runs it (SLIPWAY_WHEELS=1). SLIPWAY_ENGINE_<PROFILE>, in capitals and with an
underscore for all else, names an environment that is there.
"""

from __future__ import annotations

import os
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.modules import server_plan

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import engine_options

Run = t.Callable[..., dict[str, t.Any]]
PROFILES = engine_options.profiles()
GPUS = [{"bus_id": f"0000:{number + 1}1:00.0", "numa_node": number // 4, "sm": 120} for number in range(8)]
PAIRS = [{"path_class": one, "can_access": True, "integrity": "intact"} for one in ("NODE", "SYS")]
pytestmark = pytest.mark.skipif(not os.environ.get("SLIPWAY_WHEELS"), reason="whole stacks: SLIPWAY_WHEELS=1")


@pytest.fixture(scope="module", params=PROFILES)
def case(request: pytest.FixtureRequest) -> t.Iterator[tuple[dict[str, t.Any], Path]]:
    profile = PROFILES[request.param]
    yield profile, engine_options.environment(request.param, profile)
    engine_options.remove(request.param)


def planned(run_module: Run, profile: dict[str, t.Any], **options: t.Any) -> dict[str, t.Any]:
    result = run_module(
        server_plan,
        {
            **{name: profile[name] for name in ("engine", "engine_version")},
            **{"venv": "/opt/env", "model_path": "/srv/model", "model_name": profile["model"]["name"]},
            **{"model_type": profile["model"]["type"], "host": "::1", "launcher": "/opt/launcher"},
            **{"server": {**profile["server"], "open_devices": False}, "gpus": GPUS, "api_key_file": "/etc/key"},
            **{"links": {"verdict": "ok", "pairs": PAIRS}, **options},
        },
    )
    assert result["rc"] == 0, result["msg"]
    return result


def test_the_engine_takes_the_profiles_command_line(run_module: Run, case: tuple[dict[str, t.Any], Path]) -> None:
    profile, python = case
    result = planned(run_module, profile)
    assert result["findings"] == []
    words = engine_options.own_parser.arguments(result["argv"], profile["engine"])
    answer = engine_options.own_parser.ask(str(python), profile["engine"], words, engine_options.SECONDS)
    assert answer == {"accepted": True, "said": ""}


def test_the_shipped_table_is_what_the_engine_says(case: tuple[dict[str, t.Any], Path]) -> None:
    profile, python = case
    told = engine_options.table(python, profile["engine"])
    shipped = engine_options.options._TABLES[profile["engine"], profile["engine_version"]]
    assert shipped.strip() == told
