# SPDX-License-Identifier: GPL-3.0-or-later
"""The Proxmox VE side of a rig node: its API, its command line tools and its containers, which are real.

It imports nothing of the project: what it knows of Proxmox is Proxmox's own behaviour, not what our modules expect.
"""
