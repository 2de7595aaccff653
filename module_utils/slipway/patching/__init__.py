# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches of installed packages: read strictly, judged by hash, planned as data, written in one transaction, and taken back."""
