# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run asked for, found, changed and proved, as one page: composed as data, then rendered. It runs on the controller only."""
