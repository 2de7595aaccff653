# SPDX-License-Identifier: GPL-3.0-or-later
"""Proof that data crosses the links between GPUs: planned as data, run in a child, judged apart from both."""
