# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of an environment."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "LOCK_DRIFT": Fault(
        "fail",
        "A package of the environment is not the one that the lock means.",
        "Run the deploy again, which brings the environment back to its lock; if the new package is right, put it into the profile's "
        "requirements.in and make the lock anew",
    ),
    "SITE_STARTUP_CODE": Fault(
        "fail",
        "A file that no package brought runs, or adds modules, each time that Python starts.",
        "See what it does and whose it is; delete it, or put it into a package of the lock",
        "https://docs.python.org/3/library/site.html",
    ),
    "SITE_DEBUG_CODE": Fault(
        "fail",
        "A line that debugging left behind runs in the environment.",
        "Bring the wheel's files back with ansible-playbook playbooks/patch.yml -e patch_state=restored and restart the server; if the "
        "line is needed, make it a patch that is declared",
    ),
    "SITE_FILE_MODIFIED": Fault(
        "fail",
        "A file of a package was changed, and no patch that is known makes it what it is.",
        "Bring the wheel's file back with ansible-playbook playbooks/patch.yml -e patch_state=restored and restart the server; if the "
        "change is needed, make it a patch that is declared",
    ),
    "SITE_FILE_MISSING": Fault(
        "fail",
        "A file that a package brought is not there.",
        "Bring it back with ansible-playbook playbooks/patch.yml -e patch_state=restored and restart the server",
    ),
    "SITE_FILE_EXTRA": Fault(
        "fail",
        "A file that no package brought can be imported or compiled from site-packages.",
        "See whose it is and delete it; if it is needed, make it a patch that is declared",
    ),
    "SITE_LEFTOVER": Fault(
        "warn",
        "A file that an editor, patch or pip left lies in site-packages; somebody worked there.",
        "Compare it with the file that it belongs to, and delete it",
    ),
    "SITE_BYTECODE_STALE": Fault(
        "fail",
        "Bytecode does not belong to the source beside it: the source was changed under it, or put back.",
        "Delete the __pycache__ folder and restart the server, which may still run the old code",
        "python/cpython#121376",
    ),
    "SITE_EDITABLE": Fault(
        "fail",
        "Code of the environment lies elsewhere, where it changes without anybody installing anything.",
        "Install the package from its wheel: run the deploy again, which brings the environment back to its lock",
    ),
    "SITE_TWO_VERSIONS": Fault(
        "fail",
        "A package has the metadata of two versions, and files of both may be there.",
        "Build the environment anew: run the deploy again, or reinstall the package with uv pip install --reinstall",
    ),
    "SITE_UNRECORDED": Fault(
        "unknown",
        "A package does not say which files are its own, so that nothing can be said of them.",
        "Install it from a wheel; what setup.py or Debian's packages install has no hashes",
        "https://packaging.python.org/en/latest/specifications/recording-installed-packages/",
    ),
    "SITE_PYTHONPATH": Fault(
        "fail",
        "Modules come from outside of the environment, past its lock.",
        "Take PYTHONPATH out of what the server is started with (systemctl cat shows drop-ins), and install what is needed into the "
        "environment",
    ),
    "SITE_PATCH_UNDECLARED": Fault(
        "fail",
        "A patch is in the environment that nobody declares for it, such as one that was made for another model.",
        "Take it out with ansible-playbook playbooks/patch.yml -e patch_state=reverted, or declare it in the profile",
    ),
    "SITE_PATCH_ABSENT": Fault(
        "fail",
        "A patch that is declared for the installed version is not in the environment.",
        "Apply it with ansible-playbook playbooks/patch.yml -e patch_state=applied and restart the server",
    ),
}
