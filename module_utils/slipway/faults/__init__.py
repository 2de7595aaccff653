# SPDX-License-Identifier: GPL-3.0-or-later
"""The known faults, a file for each thing that they are about."""
