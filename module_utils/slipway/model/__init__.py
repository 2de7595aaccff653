# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's files: what they hold, whether they are whole, and how they come to a machine."""
