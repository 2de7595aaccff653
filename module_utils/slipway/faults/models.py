# SPDX-License-Identifier: GPL-3.0-or-later
"""Will a model load."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "MODEL_UNEXPECTED": Fault(
        "fail",
        "The model in the folder is another one than the profile means.",
        "Correct model.path or model.revision in the profile, or its model.type and model.architecture",
    ),
    "MODEL_TYPE_UNKNOWN": Fault(
        "fail",
        "The engine, or its transformers, does not know the model's type.",
        "Take a stack whose transformers and engine know it (glm_moe_dsa: transformers 5.2.0 and newer), or, for a repository that brings its own "
        "code, allow it (trust-remote-code) after reading it",
        "zai-org/GLM-5#22",
    ),
    "MODEL_CONFIG_REFUSED": Fault(
        "fail",
        "transformers knows the model's type and cannot read its configuration.",
        "Fetch another revision of the model, or pin the transformers that its config.json names (transformers_version)",
    ),
    "MODEL_CODE_NOT_ALLOWED": Fault(
        "fail",
        "The model cannot be read without code of its own repository, and that may not run.",
        "Read that code, pin the revision, and set trust-remote-code in the profile's server.arguments; or pin versions that know the model",
    ),
    "MODEL_CODE_BROKEN": Fault(
        "fail",
        "The code that the model's repository brings for its configuration does not load in this environment.",
        "Pin the package or version that it imports in the profile's requirements.in, or take a revision of the model that is newer",
    ),
    "MODEL_ARCHITECTURE_UNKNOWN": Fault(
        "fail",
        "The engine has no model class for this architecture.",
        "Take a release of the engine that has it, or another engine",
    ),
    "TOKENIZER_MISSING": Fault(
        "fail",
        "The model's folder has no tokenizer.",
        "Fetch it with ansible-playbook deploy.yml; where the repository has none, name one in server.arguments (tokenizer, tokenizer-path)",
    ),
    "TOKENIZER_BROKEN": Fault(
        "fail",
        "The model's tokenizer does not load in this environment.",
        "Take a newer revision of the model, or pin the transformers that its tokenizer was made with in the profile's requirements.in",
    ),
    "TOKENIZER_IMPORT": Fault(
        "fail",
        "The model's own tokenizer code imports what this transformers does not have.",
        "Take a newer revision of the model's repository, whose code does not import it, or a stack with transformers 4.57",
        "huggingface/transformers#43726",
    ),
    "CHAT_TEMPLATE_MISSING": Fault(
        "warn",
        "The model brings no template for conversations, so chat requests fail.",
        "Name one in the profile's server.arguments (chat-template), or fetch the file of the repository that holds it",
    ),
    "QUANTISATION_UNSUPPORTED": Fault(
        "fail",
        "The engine or the GPU cannot load weights that are quantised like these.",
        "Correct quantization in the profile's server.arguments, or take other weights of the model",
    ),
    "FP8_KV_UNSUPPORTED": Fault(
        "fail",
        "The attention backend cannot keep keys and values as FP8 here.",
        "Take a release that can (TRITON_MLA: vLLM 0.18.1 and newer), or keep them in 16 bits: SGLang with kv_cache_dtype bf16, vLLM with auto and weights "
        "that bring no scales for them",
        "vllm-project/vllm#35577",
    ),
    "KV_DTYPE_REFUSED": Fault(
        "fail",
        "The engine takes this kv_cache_dtype and fails on it when it writes the first keys and values.",
        "Set it to auto, or take a release in which it works",
        "vllm-project/vllm#42587",
    ),
    "ATTENTION_BACKEND_NONE": Fault(
        "fail",
        "The engine has no attention backend for this model on this GPU.",
        "Take a release that has one: on SM120 dense MLA of vLLM is TRITON_MLA alone, and sparse MLA (GLM-5, DeepSeek 3.2) needs a release after 0.22",
        "vllm-project/vllm#45317",
    ),
    "ATTENTION_UNSUPPORTED": Fault(
        "fail",
        "The attention that the model would run with has no code for this GPU.",
        "Set attention-backend in the profile's server.arguments to one that has, or take a release that brings it",
        "sgl-project/sglang#26087",
    ),
    "PARALLEL_SIZE_MISFIT": Fault(
        "fail",
        "The model cannot be divided over the GPUs as the server's parallel sizes want it.",
        "Choose a tensor_parallel (and expert or pipeline size) that divides what the detail names",
        "vllm-project/vllm#48898",
    ),
    "CONTEXT_TOO_LONG": Fault(
        "fail",
        "The declared context is longer than what the model was made for.",
        "Lower context_length in the profile's server",
    ),
    "MEMORY_TOO_SMALL": Fault(
        "fail",
        "The memory does not hold the weights and one request of the declared length.",
        "Lower context_length, spread the model over more GPUs (tensor_parallel), raise the part of the memory that the engine may use, "
        "or take smaller weights; the report has the table",
    ),
}
