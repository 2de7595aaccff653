# SPDX-License-Identifier: GPL-3.0-or-later
"""Python stack."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "LOCK_INVALID": Fault(
        "fail",
        "The lock cannot be read as a list of exact packages.",
        "Make it anew from its requirements.in with uv pip compile --generate-hashes; write nothing into it by hand",
        "https://pip.pypa.io/en/stable/topics/secure-installs/",
    ),
    "LOCK_UNHASHED": Fault(
        "fail",
        "Packages of the lock have no hash, so nothing says which file is meant.",
        "Make the lock anew with uv pip compile --generate-hashes",
        "https://pip.pypa.io/en/stable/topics/secure-installs/",
    ),
    "PYTHON_MISSING": Fault(
        "fail",
        "None of the interpreters that the stack is for runs on this machine.",
        "Install one of them there, or name one that is there in the profile's python",
    ),
    "UV_MISSING": Fault(
        "fail",
        "The program uv, which builds environments, does not run on this machine.",
        "Copy the controller's own uv there and give its path",
    ),
    "VENV_FOREIGN": Fault(
        "fail",
        "The environment's place is taken by something that Slipway did not make.",
        "Move it away, or give the environment another path; Slipway does not remove what it did not make",
    ),
    "NETWORK_UNREACHABLE": Fault(
        "fail",
        "This machine has no network: no route leads out of it, or no name server answers.",
        "Check its gateway and name server; where only a proxy leads out set slipway_proxy, and where nothing does give "
        "a folder of wheels in slipway_wheels",
    ),
    "PROXY_REFUSED": Fault(
        "fail",
        "The proxy does not answer, or does not let this machine through.",
        "Check slipway_proxy (http://user:password@host:port where it asks for a login) and, for what needs no proxy, "
        "slipway_no_proxy",
    ),
    "CA_UNTRUSTED": Fault(
        "fail",
        "The certificate of an address is signed by a CA that this machine does not trust.",
        "Put that CA beside the public ones into a file on the controller, and name the file in slipway_ca_bundle",
    ),
    "INDEX_UNREACHABLE": Fault(
        "fail",
        "The package index does not answer from this machine.",
        "Check the index's address, its login and the firewall between; slipway_python_index names another index, "
        "slipway_proxy the way to it, slipway_wheels a folder that needs none",
    ),
    "PACKAGE_UNAVAILABLE": Fault(
        "fail",
        "The index or folder of wheels does not have a wheel that the lock names, for this Python and platform.",
        "Check that the lock is for this Python and this platform, and that the mirror (slipway_python_index) or folder "
        "(slipway_wheels) is complete",
    ),
    "HASH_MISMATCH": Fault(
        "fail",
        "A file from the index or the folder of wheels is not the file that the lock means.",
        "Find out which of the two was changed before anything else; if the lock is wrong, make it anew and compare",
    ),
    "PACKAGE_EXTRA": Fault(
        "warn",
        "A package that is not in the lock was added to the environment.",
        "Add it to the profile's requirements.in and make the lock anew, or let it go with the next environment",
    ),
    "BUILD_TOOL_MISSING": Fault(
        "fail",
        "A program or library that the engine needs at run time to compile kernels is not on this machine.",
        "Name its package in the profile's build_tools.packages; CUDA's come from a source of NVIDIA's, which "
        "inference_stack_apt_source adds",
    ),
    "BUILD_TOOL_BROKEN": Fault(
        "fail",
        "A compiler that the engine needs at run time is there and cannot compile.",
        "Read the cause: a missing header comes with another package for build_tools.packages, a wrong version with the "
        "package of the right one",
    ),
    "STACK_DRIFT": Fault(
        "fail",
        "Packages of the environment are not those of the lock that it was made from.",
        "Run deploy.yml again, which puts the lock's versions back; to have another version, change the profile's "
        "requirements.in and make its lock anew",
        "https://pip.pypa.io/en/stable/user_guide/#constraints-files",
    ),
    "CONSTRAINTS_FOREIGN": Fault(
        "warn",
        "A file that would keep packages where they are is somebody else's, so it was left as it is.",
        "Add to it what constraints.txt in the environment's folder says, or take away what it says itself (pip.conf as a "
        "whole, constraint-dependencies in uv.toml), and Slipway writes its own",
    ),
    "DEPENDENCY_BROKEN": Fault(
        "fail",
        "A package of the environment requires another one than the lock has, and nobody expects it.",
        "Correct the profile's requirements.in and make its lock anew; where it is meant, name it in overrides.txt, and "
        "make lock records what a dependency check then says",
    ),
    "IMPORT_FAILED": Fault(
        "fail",
        "A module that matters does not import in the environment.",
        "Read the cause: a missing library of the system is installed there, a broken ABI needs the versions of the lock back",
    ),
    "ABI_MISMATCH": Fault(
        "fail",
        "An extension was built for another torch: it asks for functions that the installed one does not have, so that it cannot be imported.",
        "Bring torch or the extension back to the version of the lock (run the deploy again); versions that belong together are those that "
        "one resolution of the profile's requirements gives",
    ),
    "SM_NOT_COVERED": Fault(
        "fail",
        "A library has kernels, and none that this GPU can run.",
        "Choose another backend in the server's arguments (attention, MoE, quantisation), or a release of the package with kernels for this GPU",
    ),
    "CUDA_TOO_NEW": Fault(
        "fail",
        "torch was built with a newer CUDA than the driver knows.",
        "Install a newer driver (pve_host_driver_version), or a torch that was built with an older CUDA",
        "https://docs.nvidia.com/deploy/cuda-compatibility/",
    ),
    "CUDNN_TOO_OLD": Fault(
        "fail",
        "cuDNN is older than the engine needs.",
        "Pin a newer nvidia-cudnn-cu12 in the profile's overrides, and make the lock anew",
    ),
}
