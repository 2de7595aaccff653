# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated GPUs: what a node's kernel shows of them, and a driver that behaves as NVIDIA's where Slipway can notice."""
