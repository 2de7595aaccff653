# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.p2p import thresholds


def test_what_is_not_given_keeps_its_default() -> None:
    assert thresholds.read(None) == thresholds.read({}) == thresholds.Thresholds()
    found = thresholds.read({"reference_gbps": {"SYS": "39"}, "warn_ratio": 0.9, "latency_us": None})
    assert found.reference_gbps == {"PIX": 53.0, "PXB": 53.0, "PHB": 53.0, "NODE": 53.0, "SYS": 39.0}
    assert (found.warn_ratio, found.fail_ratio, found.latency_us) == (0.9, 0.85, 5.0)


def test_an_unknown_class_has_the_lowest_reference() -> None:
    found = thresholds.read({"reference_gbps": {"NODE": 40}})
    assert (found.reference("PIX"), found.reference("SYS"), found.reference(None)) == (53.0, 50.0, 40.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"warn": 1}, "there is no warn; there are bidirectional_ratio, "),
        ({"reference_gbps": {"pix": 1}}, "reference_gbps has 'pix', which is none of PIX, PXB, PHB, NODE, SYS"),
        ({"reference_gbps": {"PIX": "fast"}}, "reference_gbps.PIX is 'fast', not a number above 0"),
        ({"latency_us": 0}, "latency_us is 0, not a number above 0"),
        ({"fail_ratio": float("nan")}, "fail_ratio is nan, not a number above 0"),
    ],
)
def test_what_makes_no_sense_is_named(options: dict[str, t.Any], said: str) -> None:
    with pytest.raises(ValueError) as error:
        thresholds.read(options)
    assert str(error.value).startswith(said)
