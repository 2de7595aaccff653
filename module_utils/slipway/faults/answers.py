# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers and speed."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "CHECK_NOT_MADE": Fault(
        "unknown",
        "A check could not be made, so nothing is known about it.",
        "Put right what kept it from being made, and run it again",
    ),
    "ANSWER_MISSING": Fault(
        "fail",
        "The server gave no answer to a question.",
        "Read its log (journalctl -u) at the time of the question",
    ),
    "ANSWER_EMPTY": Fault(
        "fail",
        "The model answers nothing.",
        "Check the chat template and the stop tokens of the model, then its weights",
    ),
    "ANSWER_INCOHERENT": Fault(
        "fail",
        "The model talks nonsense.",
        "Suspect the numbers before the prompt: weights (hash), links between GPUs, kernels and number formats, patches",
    ),
    "ANSWER_WRONG": Fault(
        "fail",
        "The model's answer is not the expected one.",
        "Read the answer: if it is good, correct the case; else check weights, chat template and number formats",
    ),
    "ANSWER_LOOPS": Fault(
        "fail",
        "The model says one thing over and over.",
        "Compare weights (hash) and number formats with the profile's; a quantised model that loops at temperature 0 has lost precision",
    ),
    "ANSWER_LANGUAGE": Fault(
        "fail",
        "The model answers in another script than it must.",
        "Check the chat template and the tokenizer of the model, then as for an incoherent answer",
    ),
    "ANSWER_CUT_SHORT": Fault(
        "fail",
        "The model's answer is not whole: it is too short, cut off, or comes to no end.",
        "Raise the case's max_tokens where the answer is good; else check stop tokens (generation_config.json) and chat template",
        "sgl-project/sglang#18904",
    ),
    "ANSWER_TOKENS_LEAKED": Fault(
        "fail",
        "Tokens that steer the model stand in its answer.",
        "Check the chat template and the tokenizer, and that the server has the parsers of the model (reasoning-parser, tool-call-parser)",
    ),
    "ANSWER_UNSTABLE": Fault(
        "fail",
        "The same question at temperature 0 gets another answer.",
        "Other words for the same are let pass; for another content suspect a race in a kernel, or a cache of prefixes that returns wrong values",
        "sgl-project/sglang#20043",
    ),
    "STREAM_WRONG": Fault(
        "fail",
        "A streamed answer is not the one that comes in one piece.",
        "Check the parsers of the server (reasoning-parser, tool-call-parser) and what stands between it and its clients",
    ),
    "LONG_PROMPT_FAILS": Fault(
        "fail",
        "The server answers short prompts and fails at a long one.",
        "Read its log for 'out of resource: shared memory': then the attention kernels ask for more than the GPU has, and the profile's patches are "
        "missing; else compare its context length with the prompt's",
        "sgl-project/sglang#14311",
    ),
    "PREFIX_CACHE_WRONG": Fault(
        "fail",
        "The answer to a second question about the same text is wrong, while the first was right.",
        "Keys and values come out of the cache wrong: check the KV dtype (FP8 without the model's scales) and the attention backend, or serve without "
        "the cache of prefixes (SGLang: disable-radix-cache, vLLM: no-enable-prefix-caching)",
        "sgl-project/sglang#18904",
    ),
    "REASONING_OVER_BUDGET": Fault(
        "fail",
        "The model spent all its tokens on reasoning and came to no answer.",
        "Raise the case's max_tokens",
    ),
    "THROUGHPUT_LOW": Fault(
        "fail",
        "The server is slower than it must be.",
        "See what else uses the machine; compare clocks, links and server arguments with the last proof",
    ),
    "SERVER_IN_USE": Fault(
        "unknown",
        "The speed was not measured, since the server has others to serve.",
        "Deploy again when it has nobody to serve; acceptance_allow_load: true measures beside them, which slows them down and the figures too",
    ),
    "THROUGHPUT_BELOW_BASELINE": Fault(
        "fail",
        "The server is slower than it was on this host when the baseline was recorded.",
        "See what changed since: stack, server arguments, driver, clocks, links. If the new figure is right, remove the baseline file; the next good "
        "proof records it again",
    ),
    "THROUGHPUT_BASELINE_UNUSABLE": Fault(
        "unknown",
        "The baseline of the speed cannot be compared with.",
        "Remove the file, and the next good proof records it anew; or name the one that belongs to this model and these GPUs",
    ),
    "LOAD_ERRORS": Fault(
        "fail",
        "Requests fail when several are served at one time.",
        "Read the server's log (journalctl -u) at that time: memory for keys and values, limits of running requests, timeouts",
    ),
    "THROUGHPUT_UNKNOWN": Fault(
        "unknown",
        "The speed could not be measured.",
        "The server must stream and count its tokens (stream_options.include_usage); read its log",
    ),
}
