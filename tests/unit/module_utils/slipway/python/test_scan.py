# SPDX-License-Identifier: GPL-3.0-or-later
"""What debugging leaves behind: each kind in its disguises, and what must not be taken for it."""

from __future__ import annotations

import textwrap

import pytest
from ansible.module_utils.slipway.python import scan

WHEEL = '''\
import numpy as np
import torch


def save(model, path):
    torch.save(model, path)


def forward(x, positions):
    """Calls torch.save? No, and breakpoint() neither."""
    if x is None:
        return None
    y = x + positions
    return y
'''


def found(source: str, original: str | None = None) -> list[tuple[int, str]]:
    return [(trace.line, trace.kind) for trace in scan.scan(source, original)]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("torch.save(x, path)", "tensor_dump"),
        ("import torch as t\nt.save(x, path)", "tensor_dump"),
        ("from torch import save as keep\nkeep(x, path)", "tensor_dump"),
        ("import torch\nkeep = torch.save\nkeep(x, path)", "tensor_dump"),
        ("import torch\nkeep: object = torch.save\nkeep(x, path)", "tensor_dump"),
        ("import torch\nif keep := torch.save:\n    keep(x, path)", "tensor_dump"),
        ("import functools, torch\nfunctools.partial(torch.save, x)(path)", "tensor_dump"),
        ("from torch import save as keep\nlist(map(keep, xs, paths))", "tensor_dump"),
        ("import builtins\nbuiltins.breakpoint()", "breakpoint"),
        ("getattr(torch, 'save')(x, path)", "tensor_dump"),
        ("__import__('torch').save(x, path)", "tensor_dump"),
        ("import importlib\nimportlib.import_module('torch').save(x, path)", "tensor_dump"),
        ("def f(x):\n    import torch as hidden\n    hidden.save(x, path)", "tensor_dump"),
        ("np.save('a.npy', x.cpu().numpy())", "tensor_dump"),
        ("numpy.savez_compressed(path, x)", "tensor_dump"),
        ("x.cpu().numpy().tofile(path)", "tensor_dump"),
        ("with open(path, 'wb') as f: pickle.dump(x, f)", "tensor_dump"),
        ("from safetensors.torch import save_file\nsave_file({'x': x}, path)", "tensor_dump"),
        ("breakpoint()", "breakpoint"),
        ("torch.distributed.breakpoint()", "breakpoint"),
        ("from IPython import embed\nembed()", "breakpoint"),
        ("import pdb", "debugger"),
        ("from ipdb import set_trace as trace", "debugger"),
        ("x.set_trace()", "breakpoint"),
        ("debugpy.wait_for_client()", "breakpoint"),
        ("open('/tmp/dump.txt', 'a').write(str(x))", "temporary_file"),
        ("open(f'/dev/shm/{rank}.bin', mode='wb')", "temporary_file"),
        ("Path('/var/tmp/x').write_text(str(x))", "file_write"),
        ("os.makedirs('/tmp/dumps', exist_ok=True)", "temporary_file"),
        ("os.path.exists('/tmp/debug-on')", "temporary_file"),
        ("handle = tempfile.NamedTemporaryFile(delete=False)", "temporary_file"),
        ("torch.cuda.synchronize()", "forced_synchronisation"),
        ("torch.cuda.current_stream().synchronize()", "forced_synchronisation"),
        ("os.environ['CUDA_LAUNCH_BLOCKING'] = '1'", "forced_synchronisation"),
        ("os.environ.setdefault('CUDA_LAUNCH_BLOCKING', '1')", "forced_synchronisation"),
        ("os.environ.update(CUDA_LAUNCH_BLOCKING='1')", "forced_synchronisation"),
        ("from os import environ\nenviron['CUDA_LAUNCH_BLOCKING'] = '1'", "forced_synchronisation"),
        ("with torch.autograd.detect_anomaly():\n    pass", "forced_synchronisation"),
        ("def f(x):\n    return x\n    y = 1", "early_return"),
        ("def f(x):\n    if True:\n        return x\n    y = 1", "early_return"),
        ("for x in y:\n    raise SystemExit\n    print(x)", "early_return"),
        ("time.sleep(5)", "sleep"),
        ("from time import sleep\nsleep(1)", "sleep"),
        ("async def f():\n    await asyncio.sleep(1)", "sleep"),
        ("with torch.profiler.profile() as p:\n    pass", "profiler"),
        ("import cProfile", "profiler"),
        ("torch.cuda.nvtx.range_push('a')", "profiler"),
        ("import torch.cuda.nvtx as nvtx\nnvtx.range_push('a')", "profiler"),
        ("@profile\ndef f(): pass", "profiler"),
        ("sys.settrace(tracer)", "profiler"),
    ],
)
def test_each_kind_is_found(code: str, kind: str) -> None:
    assert kind in [trace.kind for trace in scan.scan(code, "")]


@pytest.mark.parametrize(
    "code",
    [
        "# torch.save(x, path); breakpoint()",
        "'torch.save(x, path)'",
        "def f():\n    '''import pdb; pdb.set_trace()'''",
        "model.eval()",
        "optimizer.save(x)",
        "x = torch.load(path)",
        "thread.join()",
        "open(path)",
        "open(path, 'rb')",
        "path.open()",
        "pickle.dumps(x)",
        "os.path.join(folder, 'tmp')",
        "CUDA_LAUNCH_BLOCKING = os.environ.get('CUDA_LAUNCH_BLOCKING')",
        "def f(x):\n    return x",
        "def f():\n    return\n    yield",
        "self.profile(x)",
        "self.save = save\nself.save(x)",
    ],
)
def test_what_is_none_is_not_found(code: str) -> None:
    assert scan.scan(code, "") == []


@pytest.mark.parametrize(
    "code", ["print(x)", "open(path, 'w')", "def f(x):\n    if x:\n        return 1\n    return 2", "sys.exit(1)"]
)
def test_ordinary_code_is_told_only_where_the_wheel_is_there_to_compare_with(code: str) -> None:
    assert scan.scan(code) == []


def changed(old: str, new: str) -> str:
    assert WHEEL.count(old) == 1
    return WHEEL.replace(old, new)


@pytest.mark.parametrize(
    ("source", "traces"),
    [
        (WHEEL, []),
        (WHEEL + "\ntorch.save(forward, '/tmp/x.pt')\n", [(16, "tensor_dump")]),
        (changed("    y = x + positions\n", "    print(x)\n    y = x + positions\n"), [(13, "output")]),
        (changed("    y = x + positions\n", "    if DEBUG: return x\n    y = x + positions\n"), [(13, "early_return")]),
        (changed("    y = x + positions\n", "    return x\n    y = x + positions\n"), [(13, "early_return")]),
        (changed("    y = x + positions\n", "    y = x + positions + 1\n"), []),
        # The wheel's own torch.save is not blamed: where it moved, was indented, or its line ends changed.
        ("# new\n" * 9 + WHEEL, []),
        (WHEEL.replace("\n", "\r\n"), []),
        (changed("    torch.save(model, path)", "    if path:\n        torch.save(model, path)"), []),
        # But a second one in the same function is, wherever it stands.
        (
            changed("    torch.save(model, path)", "    torch.save(model, path)\n    torch.save(model, path)"),
            [(6, "tensor_dump")],
        ),
        # A new function has returns of its own.
        (WHEEL + "\ndef new(x):\n    if x:\n        return 1\n    return 2\n", []),
    ],
)
def test_only_what_the_wheel_does_not_have(source: str, traces: list[tuple[int, str]]) -> None:
    assert found(source, WHEEL) == traces


def test_without_the_wheel_all_is_told() -> None:
    assert found(WHEEL) == [(6, "tensor_dump")]


def test_says_what_it_does() -> None:
    traces = scan.scan(
        textwrap.dedent("""\
        torch.save(hidden_states, f"/tmp/layer{n}.pt")
        time.sleep(0.1)
        def f(x):
            return x
            y = 1
    """)
    )
    assert [trace.what for trace in traces] == [
        "torch.save(hidden_states, f'/tmp/layer{n}.pt') writes data to disk, in /tmp/layer",
        "time.sleep(0.1) waits",
        "return x ends here, so that line 5 and what follows never run",
    ]


@pytest.mark.parametrize("source", ["def f(:\n", "x = " + "(" * 500 + ")" * 500, "a\0b"])
def test_what_is_no_python_is_an_error(source: str) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        scan.scan(source)
