# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's all-reduce over all GPUs of a guest, run by the stack's own Python. A room of its own: links are proven without any stack."""
