# SPDX-License-Identifier: GPL-3.0-or-later
"""Each known fault by a line as it is reported or stands in the engine's source."""

from __future__ import annotations

import re

import pytest
from ansible.module_utils.slipway.engines import log_faults
from ansible.module_utils.slipway.findings import CATALOGUE

TP0 = "[2026-01-29 00:50:31 TP0] "
CAPTURE = TP0 + "Capture cuda graph begin. This can take up to several minutes. avail mem=12.2 GB"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 94.97 GiB"
DIED = "(EngineCore_DP0 pid=9) ERROR 03-03 17:05:48 [core.py:710] Exception: WorkerProc initialization failed due to an exception in a background process."


def find(engine: str, *texts: str) -> list[tuple[str, str]]:
    return [(found.id, found.detail) for found in log_faults.find("serve.service", engine, texts)]


@pytest.mark.parametrize(
    ("engine", "texts", "fault_id", "detail"),
    [
        ("sglang", ["triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 106496, Hardware limit: 101376. Reducing"],
         "KERNEL_SHARED_MEMORY", "SGLang before 0.5.9 without its patch"),
        ("vllm", ["OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376."], "KERNEL_SHARED_MEMORY", "as of images"),
        ("sglang", ["OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376."], "KERNEL_SHARED_MEMORY", "fused MoE"),
        ("sglang", ["OutOfResources: out of resource: shared memory, Required: 200000, Hardware limit: 101376."], "KERNEL_SHARED_MEMORY", "traceback"),
        ("sglang", ["ValueError: The checkpoint you are trying to load has model type `glm_moe_dsa` but Transformers does not recognize this architecture."],
         "MODEL_TYPE_UNKNOWN", "model_type glm_moe_dsa"),
        ("sglang", ['  File "/v/transformers/models/auto/configuration_auto.py", line 1, in __getitem__', "    raise KeyError(key)", "KeyError: 'glm_moe_dsa'"],
         "MODEL_TYPE_UNKNOWN", "model_type glm_moe_dsa"),
        ("vllm", ["ValueError: Model architectures ['GlmMoeDsaForCausalLM'] are not supported for now. Supported architectures: []"],
         "MODEL_TYPE_UNKNOWN", "GlmMoeDsaForCausalLM"),
        ("vllm", ["RuntimeError: Unknown gguf model_type: glm_moe_dsa"], "MODEL_TYPE_UNKNOWN", "GGUF of glm_moe_dsa"),
        ("llamacpp", ["llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'glm-dsa'"],
         "MODEL_TYPE_UNKNOWN", "GGUF of glm-dsa"),
        ("sglang", ["ImportError: cannot import name 'bytes_to_unicode' from 'transformers.models.gpt2.tokenization_gpt2'"],
         "TOKENIZER_IMPORT", "bytes_to_unicode"),
        ("sglang", ["RuntimeError: \x1b[91m\x1b[1mCRITICAL WARNING: PyTorch 2.9.1 & CuDNN Compatibility Issue Detected"], "CUDNN_TOO_OLD", "CuDNN"),
        ("sglang", ["Current Environment: PyTorch 2.9.1+cu128 | CuDNN 9.10"], "CUDNN_TOO_OLD", "cuDNN 9.10 beside torch 2.9.1+cu128"),
        ("vllm", ["ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size=576, use_mla=True, use_sparse=True)."],
         "ATTENTION_BACKEND_NONE", "use_sparse=True"),
        ("sglang", ["RuntimeError: Assertion error (/x/csrc/apis/attention.hpp:159): Unsupported architecture"], "KERNEL_GPU_UNSUPPORTED", "attention.hpp:159"),
        ("sglang", ["RuntimeError: CUDA error: no kernel image is available for execution on the device"], "SM_NOT_COVERED", "no kernel image"),
        ("sglang", ["RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"], "SAMPLING_NAN", "probability tensor"),
        ("sglang", [TP0 + "Detected errors during sampling! NaN in the logits."], "SAMPLING_NAN", "NaN in the logits"),
        ("vllm", ["NotImplementedError: TritonMLA V1 with FP8 KV cache not yet supported"], "FP8_KV_UNSUPPORTED", "TritonMLA V1"),
        ("sglang", [TP0 + "Load weight begin. avail mem=94.08 GB", OOM], "GPU_MEMORY_WEIGHTS", "Tried to allocate 2.00 GiB"),
        ("sglang", ["RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: 0.5"], "GPU_MEMORY_KV", "mem-fraction-static"),
        ("vllm", ["ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"], "GPU_MEMORY_KV", "cache blocks"),
        ("sglang", [CAPTURE, OOM], "GPU_MEMORY_GRAPHS", "Tried to allocate"),
        ("sglang", [CAPTURE, "Exception: Capture cuda graph failed: CUDA out of memory."], "GPU_MEMORY_GRAPHS", "CUDA out of memory."),
        ("vllm", ["ValueError: Free memory on device cuda:0 (3.1/94.97 GiB) on startup is less than desired GPU memory utilization (0.9, 85.4 GiB)."],
         "GPU_IN_USE", "3.1/94.97 GiB"),
        ("vllm", ["host:9:9 [0] include/alloc.h:246 NCCL WARN Failed to CUDA calloc 10485760 bytes"], "NCCL_FAILED", "10485760"),
        ("vllm", ["[rank3]:[E516] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE) ran for 600000 milliseconds"],
         "NCCL_HUNG", "ALLREDUCE"),
        ("sglang", ["RuntimeError: NCCL error: ncclUnhandledCudaError: Call to CUDA function failed."], "NCCL_FAILED", "ncclUnhandledCudaError"),
        ("sglang", ["host:9:9 [0] misc/shmutils.cc:80 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-EoOvZr (size 7340384)"],
         "SHM_SHORT", "nccl-EoOvZr"),
        ("vllm", ["setting membind: Invalid argument", DIED], "NUMA_BIND_REFUSED", "Invalid argument"),
        ("vllm", [DIED], "WORKER_DIED", "WorkerProc initialization failed"),
        ("sglang", ["[2026-01-29 00:50:31] Rank 3 scheduler is dead. Please check if there are relevant logs."], "WORKER_DIED", "Rank 3"),
        ("vllm", ["RuntimeError: flashinfer-cubin version (0.6.13) does not match flashinfer version (0.6.14). Please install the same version"],
         "FLASHINFER_MISMATCH", "flashinfer-cubin 0.6.13 beside flashinfer 0.6.14"),
        ("sglang", ["Exception: sgl-kernel is installed with version 0.3.20, which is less than the minimum required version 0.3.21. Please"],
         "KERNEL_PACKAGE_OLD", "sgl-kernel 0.3.20, at least 0.3.21 is wanted"),
        ("vllm", ["RuntimeError: operator torchvision::nms does not exist"], "OPERATOR_MISSING", "torchvision::nms"),
        ("sglang", ["ImportError: /v/sgl_kernel/common_ops.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa"], "ABI_MISMATCH", "common_ops.abi3.so"),
        ("llamacpp", ["llamacpp-server: Cannot start: [Errno 98] Address already in use."], "PORT_IN_USE", "Address already in use"),
        ("sglang", ["launch_server.py: error: unrecognized arguments: --fp4-gemm-runner-backend x"], "FLAG_UNKNOWN", "--fp4-gemm-runner-backend x"),
        ("sglang", ["launch_server.py: error: argument --nsa-decode-backend: invalid choice: 'flashinfer' (choose from 'fa3')"], "FLAG_REFUSED", "invalid choice"),
        ("vllm", ["OSError: [Errno 28] No space left on device: '/var/lib/inference/.triton'"], "DISK_FULL", "No space left"),
        ("vllm", ["serve.service: A process of this unit has been killed by the OOM killer."], "SERVER_OOM_KILLED", "OOM killer"),
        ("vllm", ["NVRM: Xid (PCI:0000:06:00): 79, pid=1234, name=python, GPU has fallen off the bus."], "GPU_LOST", "Xid 79 of 0000:06:00"),
        ("vllm", ["RuntimeError: CUDA error: uncorrectable ECC error encountered"], "GPU_LOST", "ECC"),
        ("sglang", ["torch.AcceleratorError: CUDA error: an illegal memory access was encountered"], "KERNEL_FAULT", "illegal memory access"),
        ("sglang", ["RuntimeError: Found no NVIDIA driver on your system."], "CUDA_INIT_FAILED", "no NVIDIA driver"),
        ("sglang", ["RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"], "BUILD_TOOL_MISSING", "nvcc"),
        ("sglang", ["OSError: [Errno 30] Read-only file system: '/usr/share/x'"], "SERVER_PATH_DENIED", "/usr/share/x"),
        ("sglang", ["ModuleNotFoundError: No module named 'ray'"], "IMPORT_FAILED", "ray"),
    ],
)  # fmt: skip
def test_known(engine: str, texts: list[str], fault_id: str, detail: str) -> None:
    first = find(engine, *texts)[0]
    assert (first[0], detail in first[1]) == (fault_id, True), first


def test_each_entry_is_of_the_catalogue_and_is_tested() -> None:
    ids = {
        name for fault in log_faults.FAULTS for name in ([fault.id] if isinstance(fault.id, str) else fault.id.values())
    }
    assert ids <= set(CATALOGUE)
    (table,) = (mark for mark in test_known.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    assert ids == {row[2] for row in table.args[1]}


@pytest.mark.parametrize(
    "text",
    [
        TP0
        + "Ignore import error when loading sglang.srt.models.glmasr: cannot import name 'GlmAsrConfig' from 'transformers'",
        "KeyError: 'x'",
        "Port 30001 is already in use, trying port 30002",
        TP0 + "Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.",
        "host:1:1 [0] NCCL INFO cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation",
    ],
)
def test_what_is_no_fault(text: str) -> None:
    assert find("sglang", text) == []


def test_eight_ranks_say_it_once_and_causes_come_first() -> None:
    lost = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:30411"
    found = find("sglang", lost, *[f"[2026-01-29 00:50:31 TP{rank}] {OOM}" for rank in range(8)])
    assert [one[0] for one in found] == ["GPU_MEMORY_WEIGHTS", "NCCL_FAILED"]


def test_a_worker_that_said_why_did_not_die_without_a_word() -> None:
    assert find("vllm", "Traceback (most recent call last):", "ValueError: odd", DIED) == []


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["loading", "ValueError: odd shape", "  at the end"], "ValueError: odd shape"),
        (
            ["(Worker_TP0 pid=1) ERROR 03-03 17:05:48 [x.py:1] torch.AcceleratorError: bad"],
            "torch.AcceleratorError: bad",
        ),
        (["llamacpp-server: Cannot start: it holds no key."], "llamacpp-server: Cannot start: it holds no key."),
        (["loading", "half a sentence", ""], "half a sentence"),
        ([], ""),
    ],
)
def test_the_last_error(texts: list[str], said: str) -> None:
    assert log_faults.last_error(texts) == said


def test_patterns_are_expressions() -> None:
    for fault in log_faults.FAULTS:
        names = set(re.compile(fault.pattern).groupindex) | {"kernel"}
        assert set(re.findall(r"{(\w+)}", fault.detail)) <= names
