# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of vllm 0.19.1, as its own parser has them (tools/engine_options.py)."""

from __future__ import annotations

TABLE = """
headless flag
api-server-count whole
config text
lora-modules text*
chat-template text
chat-template-content-format text auto|openai|string
trust-request-chat-template switch
default-chat-template-kwargs json
response-role text
return-tokens-as-token-ids switch
enable-auto-tool-choice switch
exclude-tools-when-tool-choice-none switch
tool-call-parser text
tool-parser-plugin text
tool-server text
log-config-file text
max-log-len whole
enable-prompt-tokens-details switch
enable-server-load-tracking switch
enable-force-include-usage switch
enable-tokenizer-info-endpoint switch
enable-log-outputs switch
enable-log-deltas switch
log-error-stack switch
tokens-only switch
host text
port whole
uds text
uvicorn-log-level text critical|debug|error|info|trace|warning
disable-uvicorn-access-log switch
disable-access-log-for-endpoints text
allow-credentials switch
allowed-origins json
allowed-methods json
allowed-headers json
api-key text*
ssl-keyfile text
ssl-certfile text
ssl-ca-certs text
enable-ssl-refresh switch
ssl-cert-reqs whole
ssl-ciphers text
root-path text
middleware text*
enable-request-id-headers switch
disable-fastapi-docs switch
h11-max-incomplete-event-size whole
h11-max-header-count whole
enable-offline-docs switch
model text
runner text auto|draft|generate|pooling
convert text auto|classify|embed|none
tokenizer text
tokenizer-mode text
trust-remote-code switch
dtype text auto|bfloat16|float|float16|float32|half
seed whole
hf-config-path text
allowed-local-media-path text
allowed-media-domains text*
revision text
code-revision text
tokenizer-revision text
max-model-len size
quantization text
allow-deprecated-quantization switch
enforce-eager switch
enable-return-routed-experts switch
max-logprobs whole
logprobs-mode text processed_logits|processed_logprobs|raw_logits|raw_logprobs
disable-sliding-window switch
disable-cascade-attn switch
skip-tokenizer-init switch
enable-prompt-embeds switch
served-model-name text*
config-format text
hf-token text
hf-overrides text
pooler-config json
generation-config text
override-generation-config json
enable-sleep-mode switch
model-impl text
override-attention-dtype text
logits-processors text*
io-processor-plugin text
renderer-num-workers whole
load-format text
download-dir text
safetensors-load-strategy text
model-loader-extra-config text
ignore-patterns text*
use-tqdm-on-load switch
pt-load-map-location text
attention-backend text
reasoning-parser text
reasoning-parser-plugin text
distributed-executor-backend text
pipeline-parallel-size whole
master-addr text
master-port whole
nnodes whole
node-rank whole
distributed-timeout-seconds whole
tensor-parallel-size whole
decode-context-parallel-size whole
dcp-comm-backend text a2a|ag_rs
dcp-kv-cache-interleave-size whole
cp-kv-cache-interleave-size whole
prefill-context-parallel-size whole
data-parallel-size whole
data-parallel-rank whole
data-parallel-start-rank whole
data-parallel-size-local whole
data-parallel-address text
data-parallel-rpc-port whole
data-parallel-backend text
data-parallel-hybrid-lb switch
data-parallel-external-lb switch
enable-expert-parallel switch
enable-ep-weight-filter switch
all2all-backend text allgather_reducescatter|deepep_high_throughput|deepep_low_latency|flashinfer_all2allv|flashinfer_nvlink_one_sided|flashinfer_nvlink_two_sided|mori|naive|nixl_ep|pplx
enable-dbo switch
ubatch-size whole
enable-elastic-ep switch
dbo-decode-token-threshold whole
dbo-prefill-token-threshold whole
disable-nccl-for-dp-synchronization switch
enable-eplb switch
eplb-config json
expert-placement-strategy text linear|round_robin
max-parallel-loading-workers whole
ray-workers-use-nsight switch
disable-custom-all-reduce switch
worker-cls text
worker-extension-cls text
block-size whole
gpu-memory-utilization number
kv-cache-memory-bytes size
kv-cache-dtype text auto|bfloat16|float16|fp8|fp8_ds_mla|fp8_e4m3|fp8_e5m2|fp8_inc
num-gpu-blocks-override whole
enable-prefix-caching switch
prefix-caching-hash-algo text sha256|sha256_cbor|xxhash|xxhash_cbor
calculate-kv-scales switch
kv-cache-dtype-skip-layers text*
kv-sharing-fast-prefill switch
mamba-cache-dtype text auto|float16|float32
mamba-ssm-cache-dtype text auto|float16|float32
mamba-block-size whole
mamba-cache-mode text align|all|none
kv-offloading-size number
kv-offloading-backend text lmcache|native
offload-backend text auto|prefetch|uva
cpu-offload-gb number
cpu-offload-params text*
offload-group-size whole
offload-num-in-group whole
offload-prefetch-step whole
offload-params text*
language-model-only switch
limit-mm-per-prompt json
enable-mm-embeds switch
media-io-kwargs json
mm-processor-kwargs json
mm-processor-cache-gb number
mm-processor-cache-type text lru|shm
mm-shm-cache-max-object-size-mb whole
mm-encoder-only switch
mm-encoder-tp-mode text data|weights
mm-encoder-attn-backend text
interleave-mm-strings switch
skip-mm-profiling switch
video-pruning-rate number
mm-tensor-ipc text direct_rpc|torch_shm
enable-lora switch
max-loras whole
max-lora-rank whole 1|128|16|256|32|320|512|64|8
lora-dtype text auto|bfloat16|float16
enable-tower-connector-lora switch
max-cpu-loras whole
fully-sharded-loras switch
lora-target-modules text*
default-mm-loras json
specialize-active-lora switch
show-hidden-metrics-for-version text
otlp-traces-endpoint text
collect-detailed-traces text* None|all|all,model|all,worker|model|model,all|model,worker|worker|worker,all|worker,model
kv-cache-metrics switch
kv-cache-metrics-sample number
cudagraph-metrics switch
enable-layerwise-nvtx-tracing switch
enable-mfu-metrics switch
enable-logging-iteration-details switch
max-num-batched-tokens size
max-num-seqs whole
max-num-partial-prefills whole
max-long-partial-prefills whole
long-prefill-token-threshold whole
scheduling-policy text fcfs|priority
enable-chunked-prefill switch
disable-chunked-mm-input switch
scheduler-cls text
scheduler-reserve-full-isl switch
disable-hybrid-kv-cache-manager switch
async-scheduling switch
stream-interval whole
cudagraph-capture-sizes whole*
max-cudagraph-capture-size whole
enable-flashinfer-autotune switch
moe-backend text aiter|auto|cutlass|deep_gemm|flashinfer_cutedsl|flashinfer_cutlass|flashinfer_trtllm|marlin|triton
speculative-config json
kv-transfer-config json
kv-events-config json
ec-transfer-config json
compilation-config json
attention-config json
reasoning-config json
kernel-config json
additional-config text
structured-outputs-config json
profiler-config json
optimization-level text
performance-mode text balanced|interactivity|throughput
weight-transfer-config json
disable-log-stats flag
aggregate-engine-logging flag
fail-on-environ-validation switch
shutdown-timeout whole
gdn-prefill-backend text flashinfer|triton
enable-log-requests switch
"""
