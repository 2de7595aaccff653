# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles hand over of a host, in the forms that modules return, and what the output sees of a run: for tests of the report.

Each function gives fresh data. Figures are made up; they are of the size that such machines have.
"""

from __future__ import annotations

import typing as t

GPUS = [f"0000:{bus}:00.0" for bus in ("03", "04", "43", "44", "83", "84", "c3", "c4")]
RESTS_ON = {
    "boot": "8b1a", "kernel": "6.14.8-2-pve", "command line": "quiet iommu=pt", "driver": "580.105.08",
    "GPUs": GPUS, "ACS redirect": [], "device nodes": ["/dev/nvidia0 195:0"],
}  # fmt: skip
# Breaks out of HTML, of Markdown, of attributes; turns text around, moves a cursor; a word without an end.
HOSTILE = (
    "</td></table><script>alert(1)</script><img src=http://192.0.2.1/x onerror=alert(1)> \" ' & &lt; `code` **bold** [a](javascript:1) | cell "
    "\x1b[2J\x1b]0;title\x07 \x00 \u202egnirts\u202c \u200b {{ 7 * 7 }} {% raw %} " + "w" * 300
)


def run(**changed: t.Any) -> dict[str, t.Any]:
    """A run of deploy.yml that came to its end and changed nothing."""
    return {
        "playbook": "deploy.yml",
        "began": "2026-12-01T16-00-00Z",
        "ended": "2026-12-01T16-07-12Z",
        "seconds": 432.0,
        "extra_variables": [],
        "changed": {},
        "failures": {},
        **changed,
    }


def finding(
    fault: str, severity: str, subject: str, summary: str, detail: str = "", remedy: str = ""
) -> dict[str, str]:
    return {
        "id": fault, "severity": severity, "subject": subject, "summary": summary, "detail": detail, "remedy": remedy, "reference": "",
    }  # fmt: skip


def asked(directory: str = "/reports") -> dict[str, t.Any]:
    """What is known before anything was looked at."""
    return {
        "directory": directory,
        "node": "pve1",
        "vmid": 101,
        "profile": "glm-5-nvfp4-sglang",
        "summary": "GLM-5 in NVFP4 on SGLang, on eight RTX PRO 6000 Blackwell",
        "engine": "sglang 0.5.9",
        "asked": [
            {"what": "Profile", "variable": "profile", "value": "glm-5-nvfp4-sglang", "by": "the inventory"},
            {"what": "Model", "variable": None, "value": "lukealonso/GLM-5-NVFP4 at main", "by": "the profile"},
            {"what": "Tokens for one request", "variable": None, "value": 65536, "by": "the profile"},
            {"what": "GPUs", "variable": "gpu_container_gpus", "value": "all", "by": "Slipway's default"},
            {"what": "Links must be good", "variable": "acceptance_links_required", "value": True, "by": "Slipway's default"},
        ],
        "consents": ["gpu_container_allow_restart"],
        "evidence": [
            {"what": "The lock was resolved and installed.", "where": "Debian 12, without a GPU", "by": "Slipway contributors", "when": "2026-12-01"},
            {"what": "Nothing of this profile has run on a GPU.", "where": "nowhere", "by": "Slipway contributors", "when": "2026-12-01"},
        ],
        "expected": [{"figure": "output_tokens_per_second", "concurrency": 1, "from": 35, "to": 52, "source": "rtx6kpro, models/glm5"}],
    }  # fmt: skip


def healthy(directory: str = "/reports") -> dict[str, t.Any]:
    """A host with eight GPUs where all was measured and is good."""
    return {
        **asked(directory),
        "findings": [
            finding("PROOF_HOLDS", "ok", "links", "What was proven stands."),
            finding("MODEL_READY", "ok", "http://192.0.2.21:8000/v1", "The model answers."),
        ],
        "acceptance": {
            "endpoint": "http://192.0.2.21:8000/v1",
            "model": "glm-5",
            "findings": [],
            "links": kept(links_result(), "3 hours"),
            "all_reduce": kept(all_reduce_result(), "3 hours"),
            "gpus": [
                {"bus_id": address, "device": f"/dev/nvidia{index}", "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
                 "memory_mib": 97887, "numa_node": index // 4}
                for index, address in enumerate(GPUS)
            ],
            "driver": {"kernel_version": "580.105.08", "user_version": "580.105.08"},
            "cuda": {"result": 0},
            "answers": answers(),
            "throughput": throughput(),
            "speed": kept({"verdict": "ok", "throughput": throughput(), "findings": []}, "2 hours"),
        },
        "memory": memory(),
        "argv": ["/opt/slipway/envs/current/bin/python", "-m", "sglang.launch_server", "--model-path", "/srv/models/glm-5-nvfp4",
                 "--model-loader-extra-config", '{"enable_multithread_load": true, "num_threads": 16}'],
        "environment": "/opt/slipway/envs/glm-5-nvfp4-sglang-1f2e3d4c5b6a",
        "audit": {
            "venv": "/opt/slipway/envs/current", "totals": {"pristine": 41873}, "packages": [], "findings": [],
            "files": [{"path": "sglang/srt/layers/attention/triton_ops/extend_attention.py", "package": "sglang", "state": "patched", "patches": ["sglang-sm120"]}],
        },
    }  # fmt: skip


def kept(
    result: dict[str, t.Any], age: str, state: str = "holds", differences: t.Sequence[str] = ()
) -> dict[str, t.Any]:
    """As `proof_record` returns it."""
    return {
        "state": state, "proven_at": "2026-12-01T13:00:00+00:00", "age": age, "age_seconds": 10800, "differences": list(differences),
        "rests_on": RESTS_ON, "result": result, "findings": [],
    }  # fmt: skip


def links_result(**changed: t.Any) -> dict[str, t.Any]:
    """As `gpu_p2p` returns it, of eight GPUs on two sockets."""
    pairs = [
        {"source": source, "target": target, "write_gbps": 53.2 if near else 50.8, "read_gbps": 52.9 if near else 49.9,
         "bidirectional_gbps": 104.1 if near else 97.3, "latency_us": 1.4 if near else 2.1}
        for source in GPUS
        for target in GPUS
        if source != target
        for near in [(GPUS.index(source) < 4) == (GPUS.index(target) < 4)]
    ]  # fmt: skip
    return {
        "gpus": [{"bus_id": address, "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition"} for address in GPUS],
        "pairs": pairs,
        "concurrent": [
            {"kind": "all_to_one", "name": f"to {GPUS[0]}", "flows": [{}] * 7, "gbps": 52.1, "ideal_gbps": 54.0, "ratio": 0.965, "error": None},
            {"kind": "ring", "name": "forward", "flows": [{}] * 8, "gbps": 398.2, "ideal_gbps": 420.0, "ratio": 0.948, "error": None},
        ],
        "plan": {"took_seconds": 41.3, "parts": [{"test": "integrity", "kind": "all sizes", "took_seconds": 17.2}]},
        "verdict": "ok",
        "baseline": None,
        "findings": [],
        **changed,
    }  # fmt: skip


def all_reduce_result(**changed: t.Any) -> dict[str, t.Any]:
    rows = [
        {"size": size, "seconds": 0.000121, "busbw_gbps": 41.2, "checked": 6291456, "wrong": 0}
        for size in (4096, 1048576, 268435456)
    ]
    return {"verdict": "ok", "nccl_version": "2.27.5", "ranks": [{}] * 8, "results": rows, **changed}


def answers() -> list[dict[str, t.Any]]:
    return [
        answer("capital-of-japan", "factual", "What is the capital city of Japan? Answer in one sentence.", "The capital city of Japan is Tokyo."),
        {
            **answer("follow-up", "conversation", "And of Italy?", "Rome."),
            "turns": [
                {"question": "What is the capital of Japan?", "answer": "Tokyo.", "passed": True, "note": "", "finding": "", "cause": ""},
                {"question": "And of Italy?", "answer": "Rome.", "passed": True, "note": "the second turn", "finding": "", "cause": ""},
            ],
        },
        answer("small-program", "reasoning", "Write a Python function that returns the n-th Fibonacci number.",
               "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a"),
    ]  # fmt: skip


def answer(case: str, kind: str, question: str, said: str, fault: str = "", cause: str = "") -> dict[str, t.Any]:
    """As `inference_probe` returns one."""
    turn = {"question": question, "answer": said, "passed": not fault, "note": "", "finding": fault, "cause": cause}
    return {
        "case": case, "kind": kind, "question": question, "answer": said, "passed": not fault, "seconds": 1.234, "finding": fault,
        "cause": cause, "turns": [turn],
    }  # fmt: skip


def throughput() -> dict[str, t.Any]:
    """As `inference_probe` returns it."""
    return {
        "output_tokens": 256, "seconds": 5.9, "time_to_first_token_seconds": 0.21, "output_tokens_per_second": 44.8,
        "prompt_tokens_wanted": 512, "output_tokens_wanted": 256, "fixed_length": True,
        "loads": [load(1, 44.8, 28.0), load(4, 161.2, None), load(16, 512.7, None), load(64, 1108.4, None)],
    }  # fmt: skip


def load(concurrency: int, rate: float, threshold: float | None) -> dict[str, t.Any]:
    each = rate / concurrency
    return {
        "concurrency": concurrency, "requests": concurrency * 2, "failed": 0, "errors": [], "output_tokens_per_second": rate,
        "prompt_tokens_per_second": 3912.5 if concurrency == 1 else None, "threshold": threshold, "baseline": rate * 1.02,
        "stream_tokens_per_second": {"p50": each, "p90": each * 0.97, "p99": each * 0.95, "worst": each * 0.9},
        "time_to_first_token_seconds": {"p50": 0.21, "p90": 0.34, "p99": 0.41, "worst": 0.52},
        "time_per_output_token_seconds": {"p50": 1 / each, "p90": 1.03 / each, "p99": 1.05 / each, "worst": 1.1 / each},
    }  # fmt: skip


def memory() -> dict[str, t.Any]:
    """As `model_preflight` returns its `fit`."""
    rows = (("Weights of the experts", 48600, "divided by 8"), ("Other weights that are divided", 3700, "divided by 8"),
            ("Weights that each GPU has whole", 3900, "on each"), ("Driver and CUDA context", 1500, "as seen on such GPUs"),
            ("Kept for activations and graphs", 7400, "mem-fraction-static 0.92"), ("Left for keys and values", 32787, ""))  # fmt: skip
    return {
        "device": "gpu", "ranks": 8, "memory_mib": 97887, "rows": [{"name": what, "what": what, "mib": mib, "how": how} for what, mib, how in rows],
        "kv": {"form": "dsa", "dtype": "bf16", "bytes_per_token": 100152, "how": "78 layers x (512 + 64) x 2 bytes, and 132 for the indexer"},
        "kv_tokens": 314000, "context_length": 65536, "requests_at_context": 4.8, "verdict": "fits",
        "assumptions": ["Weights as they lie in the files; engines were seen to hold up to 5 % more."],
    }  # fmt: skip


def failed_links(directory: str = "/reports") -> dict[str, t.Any]:
    """A run that ended at the links: two pairs lose data, one does not come back. There were no answers yet."""
    bad = [
        finding("P2P_CORRUPT", "fail", f"{GPUS[4]} -> {GPUS[0]}", "Data that a GPU copies to another does not arrive.",
                "zeros from byte 4096 of 268435456, at all sizes", "Set iommu=pt, or switch the IOMMU off, and boot."),
        finding("P2P_HUNG", "fail", f"{GPUS[5]} -> {GPUS[0]}", "A copy between two GPUs does not come back.", "nothing for 30 seconds",
                "Look for Xid in the node's kernel log."),
    ]  # fmt: skip
    result = links_result(verdict="corrupt", findings=bad)
    for row in result["pairs"]:
        if (row["source"], row["target"]) == (GPUS[5], GPUS[0]):
            row.update(write_gbps=None, read_gbps=None, bidirectional_gbps=None, latency_us=None)
    whole = healthy(directory)
    acceptance = {"endpoint": "http://192.0.2.21:8000/v1", "model": "glm-5", "findings": bad, "links": kept(result, "2 minutes", "failed"),
                  "all_reduce": None, "gpus": [], "driver": None, "cuda": None, "answers": [], "throughput": None}  # fmt: skip
    return {**whole, "findings": bad, "acceptance": acceptance, "argv": [], "audit": None, "memory": {}}


def many_findings(directory: str = "/reports") -> dict[str, t.Any]:
    """Forty findings of all severities, answers that are wrong, a load that is too slow."""
    whole = healthy(directory)
    severities = ("info", "warn", "fail", "unknown", "ok")
    whole["findings"] = [
        finding(f"SOMETHING_{number}", severities[number % 5], f"/opt/slipway/envs/current/lib/python3.12/site-packages/package_{number}/module.py",
                "A file differs from its wheel.", f"It was changed at 2026-12-0{number % 9 + 1}.", "Bring the wheel's file back: playbooks/patch.yml.")
        for number in range(40)
    ]  # fmt: skip
    whole["acceptance"]["answers"].append(
        answer(
            "loops",
            "creative",
            "Write a poem.",
            "la la la la la la la la",
            "ANSWER_LOOPS",
            "the last 8 words are one word",
        )
    )
    return whole


def hostile(directory: str = "/reports") -> dict[str, t.Any]:
    """Names, answers and findings that hold what they like."""
    whole = healthy(directory)
    whole.update(
        profile=HOSTILE,
        summary=HOSTILE,
        engine=HOSTILE,
        node="pve1",
        environment=HOSTILE,
        gathering=HOSTILE,
        argv=[HOSTILE],
    )
    whole["asked"][0].update(what=HOSTILE, value=HOSTILE, by=HOSTILE)
    whole["evidence"][0].update(what=HOSTILE, where=HOSTILE)
    whole["findings"] = [finding("WORST", "fail", HOSTILE, HOSTILE, HOSTILE, HOSTILE)]
    proof = whole["acceptance"]
    proof.update(model=HOSTILE, endpoint="http://model.example/" + "long-path/" * 40)
    proof["answers"] = [answer(HOSTILE, "factual", HOSTILE, HOSTILE, "ANSWER_WRONG", HOSTILE)]
    proof["gpus"][0]["name"] = HOSTILE
    proof["links"]["result"]["gpus"][0]["name"] = HOSTILE
    proof["throughput"]["loads"][0]["errors"] = [{"error": HOSTILE, "count": 2}]
    whole["audit"]["files"][0].update(path=HOSTILE, patches=[HOSTILE])
    whole["memory"]["assumptions"] = [HOSTILE]
    return whole


def changed_run() -> dict[str, t.Any]:
    """A first deploy: the node and the guest were changed."""
    rows = [("pve_host", "Driver | Install", "pve1", 1), ("pve_host", "Modules | Write their options", "pve1", 3)]
    guest = [("gpu_container", "Create the guest", "pve1", 1), ("inference_server", "Run | Start it", "infer1", 1)]
    return run(
        extra_variables=["profile"],
        changed={
            "pve1": [{"role": role, "task": task, "on": on, "count": count} for role, task, on, count in rows],
            "infer1": [{"role": role, "task": task, "on": on, "count": count} for role, task, on, count in guest],
        },
    )
