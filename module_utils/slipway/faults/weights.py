# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of a model."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "MODEL_FILE_MISSING": Fault(
        "fail",
        "A file of the model is not there.",
        "Fetch it with ansible-playbook deploy.yml, which leaves the files that are whole as they are",
    ),
    "MODEL_FILE_DAMAGED": Fault(
        "fail",
        "A file of the model is not what its maker published, or is torn.",
        "Fetch it with ansible-playbook deploy.yml, which leaves the files that are whole as they are",
    ),
    "MODEL_INDEX_WRONG": Fault(
        "fail",
        "The index of the weights and the files beside it contradict each other.",
        "They are not of one revision, or were published so: name another revision in the profile (model.revision), and deploy again",
    ),
    "MODEL_INDEX_INEXACT": Fault(
        "warn",
        "The index of the weights does not tell all that lies beside it. Engines load what it names.",
        "See whether the repository has a revision in which they agree",
    ),
    "MODEL_FILE_UNKNOWN": Fault(
        "warn",
        "A file lies in the model's folder that its source does not have. Engines may read it.",
        "Take it away, or put it into a repository or folder of your own that the profile names",
    ),
    "MODEL_REVISION_OTHER": Fault(
        "fail",
        "The store has another revision of the model than the profile names.",
        "Fetch that with ansible-playbook deploy.yml; the one that is there stays until the new one is whole",
    ),
    "MODEL_REVISION_MOVES": Fault(
        "warn",
        "The profile names a branch or a tag, which can come to another commit on another day or node.",
        "Name the commit in the profile (model.revision) once it is proven; what is in the store stays as it is",
    ),
    "MODEL_REVISION_KEPT": Fault(
        "info",
        "An earlier revision, or one that was not fetched to its end, takes room in the store.",
        "Remove its folder when nobody goes back to it",
    ),
    "MODEL_REPOSITORY_UNKNOWN": Fault(
        "fail",
        "The hub has no such repository, or does not show it to this token.",
        "Correct model.repository in the profile, or give a token of an account that may see it (model_store_hub_token)",
    ),
    "MODEL_REVISION_UNKNOWN": Fault(
        "fail",
        "The repository has no such revision.",
        "Correct model.revision in the profile to a commit, a tag or a branch that its page on the hub shows",
    ),
    "MODEL_ACCESS_DENIED": Fault(
        "fail",
        "The hub does not give this repository to this token.",
        "Accept its terms on its page on the hub, and give a token of that account (model_store_hub_token)",
    ),
    "MODEL_MIRROR_INCOMPLETE": Fault(
        "fail",
        "The hub or mirror names a file and does not have it.",
        "Let the mirror fetch the whole revision, or name another one (model_store_hub_endpoint)",
    ),
    "MODEL_SOURCE_MISSING": Fault(
        "fail",
        "The folder that the weights are to come from is not there.",
        "Mount it or correct its path: model.source.folder in the profile, or model_store_source",
    ),
    "MODEL_STORE_FULL": Fault(
        "fail",
        "The file system of the model store has no room for the model.",
        "Make room there, or set model_store_directory to a folder on a larger file system; a file that is there whole takes no room again",
    ),
    "MODEL_STORE_FOREIGN": Fault(
        "fail",
        "The model's folder was not made by Slipway and has files that are not those of its source.",
        "Move the folder away, or only the files that are named; Slipway removes nothing that it did not make",
    ),
    "HUB_UNREACHABLE": Fault(
        "fail",
        "The hub that the weights come from does not answer this machine.",
        "Check its address (model_store_hub_endpoint), slipway_proxy and the firewall between, and run again: what has come is not "
        "fetched twice. Where there is no way, bring the files to a folder of the node (model_store_source)",
    ),
}
