# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of sglang 0.5.9, as its own parser has them (tools/engine_options.py)."""

from __future__ import annotations

TABLE = """
model-path,model text
tokenizer-path text
tokenizer-mode text auto|slow
tokenizer-worker-num whole
skip-tokenizer-init flag
load-format text auto|bitsandbytes|dummy|fastsafetensors|flash_rl|gguf|layered|npcache|private|pt|remote|remote_instance|safetensors|sharded_state
model-loader-extra-config text
trust-remote-code flag
context-length whole
is-embedding flag
enable-multimodal flag
revision text
model-impl text
host text
port whole
fastapi-root-path text
grpc-mode flag
skip-server-warmup flag
warmups text
nccl-port whole
checkpoint-engine-wait-weights-before-ready flag
dtype text auto|bfloat16|float|float16|float32|half
quantization text auto-round|awq|awq_marlin|bitsandbytes|compressed-tensors|fp8|gguf|gptq|gptq_marlin|marlin|modelopt|modelopt_fp4|modelopt_fp8|modelslim|moe_wna16|mxfp4|mxfp8|petit_nvfp4|qoq|quark_int4fp8_moe|w4afp8|w8a8_fp8|w8a8_int8
quantization-param-path text
kv-cache-dtype text auto|bf16|bfloat16|fp4_e2m1|fp8_e4m3|fp8_e5m2
enable-fp32-lm-head flag
modelopt-quant text
modelopt-checkpoint-restore-path text
modelopt-checkpoint-save-path text
modelopt-export-path text
quantize-and-serve flag
rl-quant-profile text
mem-fraction-static number
max-running-requests whole
max-queued-requests whole
max-total-tokens whole
chunked-prefill-size whole
prefill-max-requests whole
enable-dynamic-chunking flag
max-prefill-tokens whole
schedule-policy text dfs-weight|fcfs|lof|lpm|priority|random|routing-key
enable-priority-scheduling flag
abort-on-priority-when-disabled flag
schedule-low-priority-values-first flag
priority-scheduling-preemption-threshold whole
schedule-conservativeness number
page-size whole
hybrid-kvcache-ratio deprecated
swa-full-tokens-ratio number
disable-hybrid-swa-memory flag
radix-eviction-policy text lfu|lru
enable-prefill-delayer flag
prefill-delayer-max-delay-passes whole
prefill-delayer-token-usage-low-watermark number
prefill-delayer-forward-passes-buckets number*
prefill-delayer-wait-seconds-buckets number*
device text
tensor-parallel-size,tp-size whole
attention-context-parallel-size,attn-cp-size whole
moe-data-parallel-size,moe-dp-size whole
pipeline-parallel-size,pp-size whole
pp-max-micro-batch-size whole
pp-async-batch-depth whole
stream-interval whole
stream-output flag
random-seed whole
constrained-json-whitespace-pattern text
constrained-json-disable-any-whitespace flag
watchdog-timeout number
soft-watchdog-timeout number
dist-timeout whole
download-dir text
model-checksum text
base-gpu-id whole
gpu-id-step whole
sleep-on-idle flag
custom-sigquit-handler text
log-level text
log-level-http text
log-requests flag
log-requests-level whole 0|1|2|3
log-requests-format text json|text
log-requests-target text*
uvicorn-access-log-exclude-prefixes text*
crash-dump-folder text
show-time-cost flag
enable-metrics flag
enable-metrics-for-all-schedulers flag
tokenizer-metrics-custom-labels-header text
tokenizer-metrics-allowed-custom-labels text*
extra-metric-labels json
bucket-time-to-first-token number*
bucket-inter-token-latency number*
bucket-e2e-request-latency number*
collect-tokens-histogram flag
prompt-tokens-buckets text*
generation-tokens-buckets text*
gc-warning-threshold-secs number
decode-log-interval whole
enable-request-time-stats-logging flag
kv-events-config text
enable-trace flag
otlp-traces-endpoint text
export-metrics-to-file flag
export-metrics-to-file-dir text
api-key text
admin-api-key text
served-model-name text
weight-version text
chat-template text
hf-chat-template-name text
completion-template text
file-storage-path text
enable-cache-report flag
reasoning-parser text deepseek-r1|deepseek-v3|glm45|gpt-oss|interns1|kimi|kimi_k2|minimax|minimax-append-think|nano_v3|qwen3|qwen3-thinking|step3|step3p5
tool-call-parser text deepseekv3|deepseekv31|deepseekv32|gigachat3|glm|glm45|glm47|gpt-oss|hermes|interns1|kimi_k2|lfm2|llama3|mimo|minimax-m2|mistral|pythonic|qwen|qwen25|qwen3_coder|step3|step3p5|trinity
tool-server text
sampling-defaults text model|openai
data-parallel-size,dp-size whole
load-balance-method text auto|follow_bootstrap_room|round_robin|total_requests|total_tokens
prefill-round-robin-balance deprecated
dist-init-addr,nccl-init-addr text
nnodes whole
node-rank whole
json-model-override-args text
preferred-sampling-params json
enable-lora flag
enable-lora-overlap-loading flag
max-lora-rank whole
lora-target-modules text* all|down_proj|embed_tokens|gate_proj|gate_up_proj|k_proj|lm_head|o_proj|q_proj|qkv_proj|up_proj|v_proj
lora-paths text*
max-loras-per-batch whole
max-loaded-loras whole
lora-eviction-policy text fifo|lru
lora-backend text ascend|csgmv|torch_native|triton
max-lora-chunk-size whole 128|16|32|64
attention-backend text aiter|ascend|cutlass_mla|dual_chunk_flash_attn|fa3|fa4|flashinfer|flashmla|flex_attention|intel_amx|intel_xpu|nsa|torch_native|triton|trtllm_mha|trtllm_mla|wave
prefill-attention-backend text aiter|ascend|cutlass_mla|dual_chunk_flash_attn|fa3|fa4|flashinfer|flashmla|flex_attention|intel_amx|intel_xpu|nsa|torch_native|triton|trtllm_mha|trtllm_mla|wave
decode-attention-backend text aiter|ascend|cutlass_mla|dual_chunk_flash_attn|fa3|fa4|flashinfer|flashmla|flex_attention|intel_amx|intel_xpu|nsa|torch_native|triton|trtllm_mha|trtllm_mla|wave
sampling-backend text ascend|flashinfer|pytorch
grammar-backend text llguidance|none|outlines|xgrammar
mm-attention-backend text aiter_attn|ascend_attn|fa3|fa4|sdpa|triton_attn
nsa-prefill-backend text aiter|fa3|flashmla_auto|flashmla_kv|flashmla_sparse|tilelang|trtllm
nsa-decode-backend text aiter|fa3|flashmla_auto|flashmla_kv|flashmla_sparse|tilelang|trtllm
fp8-gemm-backend text aiter|auto|cutlass|deep_gemm|flashinfer_deepgemm|flashinfer_trtllm|triton
fp4-gemm-backend text auto|flashinfer_cudnn|flashinfer_cutlass|flashinfer_trtllm
disable-flashinfer-autotune flag
speculative-algorithm text EAGLE|EAGLE3|NEXTN|NGRAM|STANDALONE
speculative-draft-model-path,speculative-draft-model text
speculative-draft-model-revision text
speculative-draft-load-format text auto|bitsandbytes|dummy|fastsafetensors|flash_rl|gguf|layered|npcache|private|pt|remote|remote_instance|safetensors|sharded_state
speculative-num-steps whole
speculative-eagle-topk whole
speculative-num-draft-tokens whole
speculative-accept-threshold-single number
speculative-accept-threshold-acc number
speculative-token-map text
speculative-attention-mode text decode|prefill
speculative-draft-attention-backend text
speculative-moe-runner-backend text auto|cutlass|deep_gemm|flashinfer_cutedsl|flashinfer_cutlass|flashinfer_mxfp4|flashinfer_trtllm|triton|triton_kernel
speculative-moe-a2a-backend text ascend_fuseep|deepep|flashinfer|mooncake|mori|none
speculative-draft-model-quantization text auto-round|awq|awq_marlin|bitsandbytes|compressed-tensors|fp8|gguf|gptq|gptq_marlin|marlin|modelopt|modelopt_fp4|modelopt_fp8|modelslim|moe_wna16|mxfp4|mxfp8|petit_nvfp4|qoq|quark_int4fp8_moe|unquant|w4afp8|w8a8_fp8|w8a8_int8
speculative-ngram-min-match-window-size whole
speculative-ngram-max-match-window-size whole
speculative-ngram-min-bfs-breadth whole
speculative-ngram-max-bfs-breadth whole
speculative-ngram-match-type text BFS|PROB
speculative-ngram-branch-length whole
speculative-ngram-capacity whole
enable-multi-layer-eagle flag
expert-parallel-size,ep-size,ep whole
moe-a2a-backend text ascend_fuseep|deepep|flashinfer|mooncake|mori|none
moe-runner-backend text auto|cutlass|deep_gemm|flashinfer_cutedsl|flashinfer_cutlass|flashinfer_mxfp4|flashinfer_trtllm|triton|triton_kernel
flashinfer-mxfp4-moe-precision text bf16|default
enable-flashinfer-allreduce-fusion flag
deepep-mode text auto|low_latency|normal
ep-num-redundant-experts whole
ep-dispatch-algorithm text
init-expert-location text
enable-eplb flag
eplb-algorithm text
eplb-rebalance-num-iterations whole
eplb-rebalance-layers-per-chunk whole
eplb-min-rebalancing-utilization-threshold number
expert-distribution-recorder-mode text
expert-distribution-recorder-buffer-size whole
enable-expert-distribution-metrics flag
deepep-config text
moe-dense-tp-size whole
elastic-ep-backend text mooncake|none
mooncake-ib-device text
max-mamba-cache-size whole
mamba-ssm-dtype text bfloat16|float16|float32
mamba-full-memory-ratio number
mamba-scheduler-strategy text auto|extra_buffer|no_buffer
mamba-track-interval whole
mamba-backend text flashinfer|triton
enable-hierarchical-cache flag
hicache-ratio number
hicache-size whole
hicache-write-policy text write_back|write_through|write_through_selective
hicache-io-backend text direct|kernel|kernel_ascend
hicache-mem-layout text layer_first|page_first|page_first_direct|page_first_kv_split|page_head
disable-hicache-numa-detect flag
hicache-storage-backend text aibrix|dynamic|eic|file|hf3fs|mooncake|nixl
hicache-storage-prefetch-policy text best_effort|timeout|wait_complete
hicache-storage-backend-extra-config text
hierarchical-sparse-attention-extra-config text
enable-lmcache flag
kt-weight-path text
kt-method text
kt-cpuinfer whole
kt-threadpool-count whole
kt-num-gpu-experts whole
kt-max-deferred-experts-per-token whole
dllm-algorithm text
dllm-algorithm-config text
enable-double-sparsity flag
ds-channel-config-path text
ds-heavy-channel-num whole
ds-heavy-token-num whole
ds-heavy-channel-type text
ds-sparse-decode-threshold whole
cpu-offload-gb whole
offload-group-size whole
offload-num-in-group whole
offload-prefetch-step whole
offload-mode text
multi-item-scoring-delimiter whole
disable-radix-cache flag
cuda-graph-max-bs whole
cuda-graph-bs whole*
disable-cuda-graph flag
disable-cuda-graph-padding flag
enable-profile-cuda-graph flag
enable-cudagraph-gc flag
enable-layerwise-nvtx-marker flag
enable-nccl-nvls flag
enable-symm-mem flag
disable-flashinfer-cutlass-moe-fp4-allgather flag
enable-tokenizer-batch-encode flag
disable-tokenizer-batch-decode flag
disable-outlines-disk-cache flag
disable-custom-all-reduce flag
enable-mscclpp flag
enable-torch-symm-mem flag
disable-overlap-schedule flag
enable-mixed-chunk flag
enable-dp-attention flag
enable-dp-lm-head flag
enable-two-batch-overlap flag
enable-single-batch-overlap flag
tbo-token-distribution-threshold number
enable-torch-compile flag
enable-torch-compile-debug-mode flag
enable-piecewise-cuda-graph flag
piecewise-cuda-graph-tokens whole*
piecewise-cuda-graph-compiler text eager|inductor
torch-compile-max-bs whole
piecewise-cuda-graph-max-tokens whole
torchao-config text
enable-nan-detection flag
enable-p2p-check flag
triton-attention-reduce-in-fp32 flag
triton-attention-num-kv-splits whole
triton-attention-split-tile-size whole
num-continuous-decode-steps whole
delete-ckpt-after-loading flag
enable-memory-saver flag
enable-weights-cpu-backup flag
enable-draft-weights-cpu-backup flag
allow-auto-truncate flag
enable-custom-logit-processor flag
flashinfer-mla-disable-ragged flag
disable-shared-experts-fusion flag
disable-chunked-prefix-cache flag
disable-fast-image-processor flag
keep-mm-feature-on-device flag
enable-return-hidden-states flag
enable-return-routed-experts flag
scheduler-recv-interval whole
numa-node whole*
enable-deterministic-inference flag
rl-on-policy-target text fsdp
enable-attn-tp-input-scattered flag
enable-nsa-prefill-context-parallel flag
nsa-prefill-cp-mode text in-seq-split|round-robin-split
enable-fused-qk-norm-rope flag
enable-precise-embedding-interpolation flag
enable-dynamic-batch-tokenizer flag
dynamic-batch-tokenizer-batch-size whole
dynamic-batch-tokenizer-batch-timeout number
debug-tensor-dump-output-folder text
debug-tensor-dump-layers whole*
debug-tensor-dump-input-file text
debug-tensor-dump-inject text
disaggregation-mode text decode|null|prefill
disaggregation-transfer-backend text ascend|fake|mooncake|mori|nixl
disaggregation-bootstrap-port whole
disaggregation-decode-tp whole
disaggregation-decode-dp whole
disaggregation-prefill-pp whole
disaggregation-ib-device text
disaggregation-decode-enable-offload-kvcache flag
num-reserved-decode-tokens whole
disaggregation-decode-polling-interval whole
encoder-only flag
language-only flag
encoder-transfer-backend text mooncake|zmq_to_scheduler|zmq_to_tokenizer
encoder-urls text*
custom-weight-loader text*
weight-loader-disable-mmap flag
remote-instance-weight-loader-seed-instance-ip text
remote-instance-weight-loader-seed-instance-service-port whole
remote-instance-weight-loader-send-weights-group-ports json
remote-instance-weight-loader-backend text nccl|transfer_engine
remote-instance-weight-loader-start-seed-via-transfer-engine flag
enable-pdmux flag
pdmux-config-path text
sm-group-num whole
config text
mm-max-concurrent-calls whole
mm-per-request-timeout whole
enable-broadcast-mm-inputs-process flag
mm-process-config json
mm-enable-dp-encoder flag
limit-mm-data-per-request json
decrypted-config-file text
decrypted-draft-config-file text
enable-prefix-mm-cache flag
forward-hooks json
"""
