# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node comes up: its boot loaders, its kernels, and what the kernel that was started shows of itself."""
