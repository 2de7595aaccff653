# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "PATCH_INVALID": Fault(
        "fail",
        "A patch cannot be used as it is declared.",
        "Correct patch.yml or change.diff as the detail says; 'make patch-new' makes both from an edited file",
    ),
    "PATCH_VERSION_UNKNOWN": Fault(
        "fail",
        "A patch is not made for the version that is installed.",
        "Make the patch anew for this version ('make patch-new'), declare superseded_in where upstream has the change, or take the "
        "patch out of the profile",
    ),
    "PATCH_PACKAGE_MISSING": Fault(
        "fail",
        "The package that a patch is for is not installed, or is there twice.",
        "Correct package in the patch, or install it in one version",
    ),
    "PATCH_FOREIGN": Fault(
        "fail",
        "A file that a patch is about was changed by somebody else, so nothing was done to it.",
        "Read the difference. If nobody needs it, bring the wheel's files back (state: restored, or playbooks/patch.yml -e "
        "patch_state=restored) and apply again; if it is needed, make a patch of it ('make patch-new')",
    ),
    "PATCH_MIXED": Fault(
        "fail",
        "A patch is there in some of its files and not in others.",
        "Bring the wheel's files back (state: restored, or playbooks/patch.yml -e patch_state=restored), and apply again",
    ),
    "PATCH_COVERED": Fault(
        "fail",
        "A patch lies under another one in the same file.",
        "Revert both together, and apply the one that is to stay again",
    ),
    "PATCH_UPSTREAM": Fault(
        "info",
        "The installed version has the change of a patch by itself; nothing is applied, and reverting touches nothing.",
        "Take the patch out of the profile when no older version is used any more",
    ),
    "PATCH_EQUIVALENT": Fault(
        "info",
        "A file has the change of a patch in another form, which is left as it is.",
        "Nothing; to have this patch in its place, bring the wheel's files back (state: restored) and apply again",
    ),
    "PATCH_STALE": Fault(
        "info",
        "A patch was applied to a version of its package that is not installed any more; its record is dropped.",
        "Nothing; where the new version needs the patch too, it is applied again or refused by itself",
    ),
    "PATCH_INTERRUPTED": Fault(
        "info",
        "An earlier run was cut off while it changed files of the environment.",
        "Nothing is to be done",
    ),
    "PATCH_ORIGINAL_LOST": Fault(
        "fail",
        "A patch cannot be taken back, as what it replaced is kept nowhere.",
        "Bring the wheel's files back (state: restored, or playbooks/patch.yml -e patch_state=restored)",
    ),
    "PATCH_PATH_UNSAFE": Fault(
        "fail",
        "A path that a patch names is not a plain file below site-packages.",
        "Correct the path in the patch; where the file is a symbolic link, build the environment anew with copies (uv --link-mode copy)",
    ),
}
