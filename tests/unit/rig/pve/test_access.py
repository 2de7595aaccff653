# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest
from pve.access import ROLES, Access
from pve.errors import ApiError
from pve.node import Node

TOKEN = "slipway@pve!deploy"


def _refusal(call: object, *args: object) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        call(*args)  # type: ignore[operator]
    return caught.value.status, caught.value.message


def test_tickets(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    access = node.access
    found = access.log_in("slipway@pve", "a-user-password")
    ticket, csrf = found["ticket"], found["CSRFPreventionToken"]
    assert access.by_ticket(ticket, None, writes=False) == "slipway@pve"
    assert access.by_ticket(ticket, csrf, writes=True) == "slipway@pve"
    assert _refusal(access.by_ticket, ticket, None, True)[0] == 401
    assert _refusal(access.by_ticket, ticket, access.log_in("root@pam", "a-root-password")["CSRFPreventionToken"], True)
    invalid = (401, "permission denied - invalid PVE ticket")
    assert _refusal(access.by_ticket, ticket.replace("slipway@pve", "root@pam"), None, False) == invalid
    assert _refusal(access.by_ticket, "PVE:nobody", None, False) == invalid
    assert access.log_in("slipway@pve", ticket)["username"] == "slipway@pve"  # renewed by a ticket that still holds
    late = time.time() + 7300
    monkeypatch.setattr("time.time", lambda: late)
    assert _refusal(access.by_ticket, ticket, csrf, True) == invalid


@pytest.mark.parametrize(
    ("user", "password"),
    [("root@pam", "wrong"), ("watch@pve", ""), ("nobody@pve", "a-root-password"), ("slipway@pve", "a-root-password")],
)
def test_refused_passwords(node: Node, user: str, password: str) -> None:
    assert _refusal(node.access.log_in, user, password) == (401, "authentication failure")


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (f"{TOKEN}=wrong", "invalid token value!"),
        ("slipway@pve!other=token-secret", "no such token 'other' for user 'slipway@pve'"),
        ("nobody@pve!deploy=token-secret", "no such user ('nobody@pve')"),
        ("slipway@pve=token-secret", "no such token '' for user 'slipway@pve'"),
    ],
)
def test_refused_tokens(node: Node, header: str, why: str) -> None:
    assert node.access.by_token(f"PVEAPIToken={TOKEN}=token-secret") == TOKEN
    assert _refusal(node.access.by_token, f"PVEAPIToken={header}") == (401, why)


def test_the_nearest_list_decides() -> None:
    access = Access(users={"a@pve"})
    access.lists = [
        ("/", True, "a@pve", "Administrator"),
        ("/vms", True, "a@pve", "PVEAuditor"),
        ("/vms", True, "a@pve", "PVEVMUser"),
        ("/vms/7", True, "a@pve", "NoAccess"),
        ("/nodes", False, "a@pve", "PVEAuditor"),
    ]
    assert access.has("a@pve", "/storage/local", ["Datastore.Allocate"])
    assert access.privileges("a@pve", "/vms/8") == ROLES["PVEAuditor"] | ROLES["PVEVMUser"]
    assert access.privileges("a@pve", "/vms/7") == set()
    assert access.privileges("a@pve", "/nodes") == ROLES["PVEAuditor"]
    assert access.has("a@pve", "/nodes/n", ["Sys.Modify"])  # not propagated, so the list of / holds there
    assert access.privileges("b@pve", "/") == set()


def test_a_separated_token_has_no_more_than_its_user() -> None:
    access = Access(users={"a@pve", "root@pam"}, separated={"a@pve!t": True, "a@pve!all": False, "root@pam!t": True})
    access.lists = [
        ("/vms", True, "a@pve", "PVEVMUser"),
        ("/vms", True, "a@pve!t", "PVEVMAdmin"),
        ("/vms", True, "root@pam!t", "PVEAuditor"),
    ]
    assert access.privileges("a@pve!t", "/vms/1") == ROLES["PVEVMUser"]
    assert access.privileges("a@pve!all", "/vms/1") == ROLES["PVEVMUser"]
    assert access.privileges("root@pam!t", "/vms/1") == ROLES["PVEAuditor"]


def test_the_tree_of_privileges_says_what_is_handed_down() -> None:
    access = Access(users={"a@pve"}, separated={"a@pve!t": True})
    access.roles = {"See": {"VM.Audit"}, "Run": {"VM.Audit", "VM.PowerMgmt"}}
    access.lists = [
        ("/", False, "a@pve", "See"),
        ("/vms", True, "a@pve", "Run"),
        ("/vms", True, "a@pve!t", "See"),
        ("/vms", False, "a@pve!t", "Run"),
        ("/vms/7", True, "a@pve", "NoAccess"),
        ("/storage", True, "b@pve", "See"),
    ]
    # Without any privilege a path is not there, be it one that Proxmox lists in any case or one of a list.
    assert access.tree("a@pve") == {
        "/": {"VM.Audit": 0},
        "/vms": {"VM.Audit": 1, "VM.PowerMgmt": 1},
    }
    assert access.tree("a@pve!t") == {"/vms": {"VM.Audit": 1, "VM.PowerMgmt": 0}}
    assert set(access.tree("root@pam")) >= {"/", "/access", "/nodes", "/pool", "/sdn", "/storage", "/vms"}
