# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank of the all-reduce. Runs as a program of its own in the stack's Python, which has torch and nothing of Slipway.

It comes as text on standard input, with one JSON object as its argument: ``rank ranks backend store`` (a path), ``device`` (an ordinal)
and ``sizes`` (each ``bytes iterations``). It answers with a JSON object a line on standard output; what libraries print goes to standard
error. Each line is one of ``phase``, facts (``torch nccl name sm bus_id peers``), a size (``size seconds checked faults``, the first without a time), ``error text``, ``done``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import typing as t

# A prime: no two places of a buffer that differ by pages hold the same values.
TILE = 524287
# bfloat16 holds each integer up to here, so that sums are exact in whatever order ranks are added.
EXACT = 256
WARM_UP = 3
FIRST_BYTES = 64
DTYPES = ("bfloat16", "float32")
_END_SECONDS = 5.0

Say = t.Callable[..., None]


def main(argument: str) -> int:
    """Run one rank. Anything that goes wrong is said; the exit status is 1 then."""
    # NCCL logs on standard output: what follows must not be mixed with it.
    channel = os.dup(1)
    os.dup2(2, 1)

    def say(**what: t.Any) -> None:
        os.write(channel, json.dumps(what).encode() + b"\n")

    try:
        run(json.loads(argument), say)
    except BaseException as error:  # of any kind of torch's, NCCL's and the loader's: the parent must learn of each
        say(error=type(error).__name__, text=str(error)[-3000:])
        return 1
    return 0


def run(given: dict[str, t.Any], say: Say) -> None:
    """All phases of a rank, each of which is said when it begins."""
    say(phase="import")
    torch = importlib.import_module("torch")
    dist = importlib.import_module("torch.distributed")
    rank, ranks, on_gpu = given["rank"], given["ranks"], given["backend"] == "nccl"
    say(phase="device", torch=torch.__version__)
    device = _gpu(torch, dist, given["device"], say) if on_gpu else torch.device("cpu")
    say(phase="rendezvous")
    store = dist.FileStore(given["store"], ranks)
    store.add("here", 1)
    _together(store, "here", ranks, None)
    dist.init_process_group(given["backend"], store=store, rank=rank, world_size=ranks)
    say(phase="first all-reduce")
    first = _checked(torch, dist, device, DTYPES[0], FIRST_BYTES, rank, ranks, 0)
    say(size=FIRST_BYTES, seconds=None, checked=first["checked"], faults=[first] if first["wrong"] else [])
    for size in given["sizes"]:
        say(phase=f"{size['bytes']} bytes")
        say(size=size["bytes"], **_size(torch, dist, device, size, rank, ranks, on_gpu))
    say(phase="end")
    # A rank that is gone takes memory with it that a slower one may still read.
    store.add("done", 1)
    _together(store, "done", ranks, _END_SECONDS)
    say(done=True)


def _gpu(torch: t.Any, dist: t.Any, ordinal: int, say: Say) -> t.Any:
    """The rank's GPU, with a context on it."""
    torch.cuda.init()
    if not dist.is_nccl_available():
        raise RuntimeError(f"torch {torch.__version__} was built without NCCL")
    torch.cuda.set_device(ordinal)
    device = torch.device("cuda", ordinal)
    torch.zeros(1, device=device)
    torch.cuda.synchronize()
    facts = torch.cuda.get_device_properties(ordinal)
    place = [getattr(facts, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]  # since torch 2.8
    say(
        nccl=".".join(str(part) for part in torch.cuda.nccl.version()),
        name=facts.name,
        sm=facts.major * 10 + facts.minor,
        bus_id=None if None in place else f"{place[0]:04x}:{place[1]:02x}:{place[2]:02x}.0",
        peers=[n for n in range(torch.cuda.device_count()) if n != ordinal and _can_access(torch, ordinal, n)],
    )
    return device


def _can_access(torch: t.Any, ordinal: int, other: int) -> bool:
    return bool(torch.cuda.can_device_access_peer(ordinal, other))


def _together(store: t.Any, key: str, ranks: int, seconds: float | None) -> None:
    """Wait until each rank has counted itself; without a limit the parent's holds."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while store.add(key, 0) < ranks and (deadline is None or time.monotonic() < deadline):
        time.sleep(0.02)


def _size(
    torch: t.Any, dist: t.Any, device: t.Any, size: dict[str, int], rank: int, ranks: int, on_gpu: bool
) -> dict[str, t.Any]:
    """One size: data is checked in each number format, then copies are timed, then data is checked again."""
    checks = []
    for number, dtype in enumerate(DTYPES, 1):
        checks.append(_checked(torch, dist, device, dtype, size["bytes"], rank, ranks, number))
    seconds = _timed(torch, dist, device, size, on_gpu)
    checks.append(_checked(torch, dist, device, DTYPES[0], size["bytes"], rank, ranks, len(DTYPES) + 1))
    return {
        "seconds": seconds,
        "checked": sum(check["checked"] for check in checks),
        "faults": [check for check in checks if check["wrong"]],
    }


def value(index: t.Any, rank: int, ranks: int, number: int) -> t.Any:
    """What a rank sends at an index in a round: from 1 up, such that all ranks together are at most ``EXACT``."""
    return (index * 40503 + rank * 104729 + number * 12347) % TILE % (EXACT // ranks) + 1


def _checked(
    torch: t.Any, dist: t.Any, device: t.Any, dtype: str, size: int, rank: int, ranks: int, number: int
) -> dict[str, t.Any]:
    """One all-reduce of values that depend on rank, place and round; each sum is compared with what it must be."""
    form = getattr(torch, dtype)
    buffer = torch.empty(max(size // form.itemsize, 1), dtype=form, device=device)
    index = torch.arange(min(TILE, buffer.numel()), dtype=torch.int64, device=device)
    tiles = [value(index, one, ranks, number) for one in range(ranks)]
    for part, tile in _parts(buffer, tiles[rank]):
        part.copy_(tile)
    dist.all_reduce(buffer)
    expected, own = sum(tiles).to(form), tiles[rank].to(form)
    told = {"dtype": dtype, "round": number, "checked": buffer.numel(), "wrong": 0, "zeros": 0, "unchanged": 0}
    offset = 0
    for part, tile in _parts(buffer, expected):
        bad = part != tile
        wrong = int(bad.sum())
        if wrong and not told["wrong"]:
            at = int(bad.flatten().to(torch.uint8).argmax())
            told["offset"] = offset + at
            told["got"], told["expected"] = _finite(part.flatten()[at]), _finite(tile[at % tile.numel()])
        told["wrong"] += wrong
        if wrong:
            told["zeros"] += int((bad & (part == 0)).sum())
            told["unchanged"] += int((bad & (part == own[: tile.numel()])).sum())
        offset += part.numel()
    return told


def _finite(value: t.Any) -> float | None:
    """A number that JSON can hold, or ``None`` for one that is none."""
    number = float(value)
    return number if abs(number) < float("inf") else None


def _parts(buffer: t.Any, tile: t.Any) -> t.Iterator[tuple[t.Any, t.Any]]:
    """The buffer as rows of tiles, and what is left of it, each with the values that belong there."""
    whole = buffer.numel() // tile.numel()
    yield buffer[: whole * tile.numel()].view(whole, tile.numel()), tile
    rest = buffer[whole * tile.numel() :]
    if rest.numel():
        yield rest, tile[: rest.numel()]


def _timed(torch: t.Any, dist: t.Any, device: t.Any, size: dict[str, int], on_gpu: bool) -> float:
    """Seconds of one of many all-reduces that follow each other."""
    buffer = torch.ones(max(size["bytes"] // 2, 1), dtype=torch.bfloat16, device=device)
    for _number in range(WARM_UP):
        dist.all_reduce(buffer)
    if not on_gpu:
        began = time.perf_counter()
        for _number in range(size["iterations"]):
            dist.all_reduce(buffer)
        return (time.perf_counter() - began) / size["iterations"]
    torch.cuda.synchronize()
    start, stop = (torch.cuda.Event(enable_timing=True) for _edge in range(2))
    start.record()
    for _number in range(size["iterations"]):
        dist.all_reduce(buffer)
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop)) / 1e3 / size["iterations"]


if __name__ == "__main__":
    status = main(sys.argv[1])
    sys.stderr.flush()
    # Destructors of CUDA and NCCL can hang when another rank is gone.
    os._exit(status)
