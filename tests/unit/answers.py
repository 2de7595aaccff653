# SPDX-License-Identifier: GPL-3.0-or-later
"""What models say: good answers of many kinds and languages by name, and bad ones, each with the id that it must get.

They are data beside this file, since their letters look like others on purpose.
"""

from __future__ import annotations

import json
from pathlib import Path

_DATA = json.loads((Path(__file__).parent / "answers.json").read_text(encoding="utf-8"))
GOOD: dict[str, str] = _DATA["good"]
BAD: dict[str, tuple[str, str]] = {name: (text, finding_id) for name, (text, finding_id) in _DATA["bad"].items()}
