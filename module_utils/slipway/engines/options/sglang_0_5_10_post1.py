# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of sglang 0.5.10.post1, as its own parser has them (tools/engine_options.py)."""

from __future__ import annotations

TABLE = """
model-path,model text
tokenizer-path text
tokenizer-mode text auto|slow
tokenizer-worker-num whole
skip-tokenizer-init flag
load-format text auto|pt|safetensors|npcache|dummy|sharded_state|gguf|bitsandbytes|mistral|layered|flash_rl|remote|remote_instance|fastsafetensors|private|runai_streamer
model-loader-extra-config text
trust-remote-code flag
context-length size
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
ssl-keyfile text
ssl-certfile text
ssl-ca-certs text
ssl-keyfile-password text
enable-ssl-refresh flag
dtype text auto|half|float16|bfloat16|float|float32
quantization text awq|fp8|mxfp8|gptq|marlin|gptq_marlin|awq_marlin|bitsandbytes|gguf|modelopt|modelopt_fp8|modelopt_fp4|modelopt_mixed|petit_nvfp4|w8a8_int8|w8a8_fp8|moe_wna16|qoq|w4afp8|mxfp4|auto-round|compressed-tensors|modelslim|quark_int4fp8_moe
quantization-param-path text
kv-cache-dtype text auto|fp8_e5m2|fp8_e4m3|bf16|bfloat16|fp4_e2m1
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
max-total-tokens size
chunked-prefill-size whole
prefill-max-requests whole
enable-dynamic-chunking flag
max-prefill-tokens size
schedule-policy text lpm|random|fcfs|dfs-weight|lof|priority|routing-key
enable-priority-scheduling flag
disable-priority-preemption flag
default-priority-value whole
abort-on-priority-when-disabled flag
schedule-low-priority-values-first flag
priority-scheduling-preemption-threshold whole
schedule-conservativeness number
page-size whole
hybrid-kvcache-ratio deprecated
swa-full-tokens-ratio number
disable-hybrid-swa-memory flag
radix-eviction-policy text lru|lfu|slru
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
incremental-streaming-output flag
stream-response-default-include-usage flag
stream-output deprecated
enable-streaming-session flag
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
use-ray flag
custom-sigquit-handler text
log-level text
log-level-http text
log-requests flag
log-requests-level whole 0|1|2|3
log-requests-format text text|json
log-requests-target text*
uvicorn-access-log-exclude-prefixes text*
crash-dump-folder text
show-time-cost flag
enable-metrics flag
enable-mfu-metrics flag
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
reasoning-parser text deepseek-r1|deepseek-v3|glm45|gpt-oss|kimi|kimi_k2|mimo|qwen3|qwen3-thinking|minimax|minimax-append-think|step3|step3p5|mistral|nemotron_3|interns1
tool-call-parser text deepseekv3|deepseekv31|deepseekv32|glm|glm45|glm47|gpt-oss|kimi_k2|lfm2|llama3|mimo|mistral|pythonic|qwen|qwen25|qwen3_coder|step3|step3p5|minimax-m2|trinity|interns1|hermes|gigachat3
tool-server text
sampling-defaults text openai|model
data-parallel-size,dp-size whole
load-balance-method text auto|round_robin|follow_bootstrap_room|total_requests|total_tokens
prefill-round-robin-balance deprecated
dist-init-addr,nccl-init-addr text
nnodes whole
node-rank whole
json-model-override-args text
preferred-sampling-params json
enable-lora flag
enable-lora-overlap-loading flag
max-lora-rank whole
lora-target-modules text* q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj|qkv_proj|gate_up_proj|embed_tokens|lm_head|all
lora-paths text*
max-loras-per-batch whole
max-loaded-loras whole
lora-eviction-policy text lru|fifo
lora-backend text triton|csgmv|ascend|torch_native
max-lora-chunk-size whole 16|32|64|128
experts-shared-outer-loras switch
attention-backend text triton|torch_native|flex_attention|nsa|cutlass_mla|fa3|fa4|flashinfer|flashmla|trtllm_mla|trtllm_mha|dual_chunk_flash_attn|aiter|wave|intel_amx|ascend|intel_xpu
prefill-attention-backend text triton|torch_native|flex_attention|nsa|cutlass_mla|fa3|fa4|flashinfer|flashmla|trtllm_mla|trtllm_mha|dual_chunk_flash_attn|aiter|wave|intel_amx|ascend|intel_xpu
decode-attention-backend text triton|torch_native|flex_attention|nsa|cutlass_mla|fa3|fa4|flashinfer|flashmla|trtllm_mla|trtllm_mha|dual_chunk_flash_attn|aiter|wave|intel_amx|ascend|intel_xpu
sampling-backend text ascend|pytorch|flashinfer
grammar-backend text xgrammar|outlines|llguidance|none
mm-attention-backend text sdpa|fa3|fa4|triton_attn|ascend_attn|aiter_attn|flashinfer_cudnn
nsa-prefill-backend text flashmla_sparse|flashmla_kv|flashmla_auto|fa3|tilelang|aiter|trtllm
nsa-decode-backend text flashmla_sparse|flashmla_kv|flashmla_auto|fa3|tilelang|aiter|trtllm
fp8-gemm-backend text auto|deep_gemm|flashinfer_trtllm|flashinfer_cutlass|flashinfer_deepgemm|cutlass|triton|aiter
fp4-gemm-backend text auto|cutlass|flashinfer_cudnn|flashinfer_cutlass|flashinfer_trtllm
disable-flashinfer-autotune flag
speculative-algorithm text EAGLE|EAGLE3|NEXTN|STANDALONE|NGRAM
speculative-draft-model-path,speculative-draft-model text
speculative-draft-model-revision text
speculative-draft-load-format text auto|pt|safetensors|npcache|dummy|sharded_state|gguf|bitsandbytes|mistral|layered|flash_rl|remote|remote_instance|fastsafetensors|private|runai_streamer
speculative-num-steps whole
speculative-eagle-topk whole
speculative-num-draft-tokens whole
speculative-accept-threshold-single number
speculative-accept-threshold-acc number
speculative-token-map text
speculative-attention-mode text prefill|decode
speculative-draft-attention-backend text
speculative-moe-runner-backend text auto|deep_gemm|triton|triton_kernel|flashinfer_trtllm|flashinfer_trtllm_routed|flashinfer_cutlass|flashinfer_mxfp4|flashinfer_cutedsl|cutlass
speculative-moe-a2a-backend text none|deepep|mooncake|nixl|mori|ascend_fuseep|flashinfer
speculative-draft-model-quantization text awq|fp8|mxfp8|gptq|marlin|gptq_marlin|awq_marlin|bitsandbytes|gguf|modelopt|modelopt_fp8|modelopt_fp4|modelopt_mixed|petit_nvfp4|w8a8_int8|w8a8_fp8|moe_wna16|qoq|w4afp8|mxfp4|auto-round|compressed-tensors|modelslim|quark_int4fp8_moe|unquant
speculative-ngram-min-bfs-breadth whole
speculative-ngram-max-bfs-breadth whole
speculative-ngram-match-type text BFS|PROB
speculative-ngram-max-trie-depth whole
speculative-ngram-capacity whole
enable-multi-layer-eagle flag
expert-parallel-size,ep-size,ep whole
moe-a2a-backend text none|deepep|mooncake|nixl|mori|ascend_fuseep|flashinfer
moe-runner-backend text auto|deep_gemm|triton|triton_kernel|flashinfer_trtllm|flashinfer_trtllm_routed|flashinfer_cutlass|flashinfer_mxfp4|flashinfer_cutedsl|cutlass
flashinfer-mxfp4-moe-precision text default|bf16
enable-flashinfer-allreduce-fusion flag
enforce-disable-flashinfer-allreduce-fusion flag
enable-aiter-allreduce-fusion flag
deepep-mode text normal|low_latency|auto
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
elastic-ep-backend text none|mooncake|nixl
enable-elastic-expert-backup flag
mooncake-ib-device text
max-mamba-cache-size whole
mamba-ssm-dtype text float32|bfloat16|float16
mamba-full-memory-ratio number
mamba-scheduler-strategy text auto|no_buffer|extra_buffer
mamba-track-interval whole
mamba-backend text triton|flashinfer
linear-attn-backend text triton|cutedsl|flashinfer
linear-attn-decode-backend text triton|cutedsl|flashinfer
linear-attn-prefill-backend text triton|cutedsl|flashinfer
enable-hierarchical-cache flag
hicache-ratio number
hicache-size whole
hicache-write-policy text write_back|write_through|write_through_selective
hicache-io-backend text direct|kernel|kernel_ascend
hicache-mem-layout text layer_first|page_first|page_first_direct|page_first_kv_split|page_head
hicache-storage-backend text file|mooncake|hf3fs|nixl|aibrix|dynamic|eic
hicache-storage-prefetch-policy text best_effort|wait_complete|timeout
hicache-storage-backend-extra-config text
enable-hisparse flag
hisparse-config text
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
pre-warm-nccl flag
disable-overlap-schedule flag
enable-mixed-chunk flag
enable-dp-attention flag
enable-dp-lm-head flag
enable-two-batch-overlap flag
enable-single-batch-overlap flag
tbo-token-distribution-threshold number
enable-torch-compile flag
enable-torch-compile-debug-mode flag
disable-piecewise-cuda-graph flag
enable-piecewise-cuda-graph deprecated
enforce-piecewise-cuda-graph flag
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
enable-prefill-context-parallel flag
prefill-cp-mode text in-seq-split
enable-fused-qk-norm-rope flag
enable-precise-embedding-interpolation flag
enable-fused-moe-sum-all-reduce flag
gc-threshold whole*
enable-dynamic-batch-tokenizer flag
dynamic-batch-tokenizer-batch-size whole
dynamic-batch-tokenizer-batch-timeout number
debug-tensor-dump-output-folder text
debug-tensor-dump-layers whole*
debug-tensor-dump-input-file text
debug-tensor-dump-inject text
disaggregation-mode text null|prefill|decode
disaggregation-transfer-backend text mooncake|nixl|ascend|fake|mori
disaggregation-bootstrap-port whole
disaggregation-ib-device text
disaggregation-decode-enable-offload-kvcache flag
num-reserved-decode-tokens whole
disaggregation-decode-polling-interval whole
encoder-only flag
language-only flag
encoder-transfer-backend text zmq_to_scheduler|zmq_to_tokenizer|mooncake
encoder-urls text*
enable-adaptive-dispatch-to-encoder flag
custom-weight-loader text*
weight-loader-disable-mmap flag
remote-instance-weight-loader-seed-instance-ip text
remote-instance-weight-loader-seed-instance-service-port whole
remote-instance-weight-loader-send-weights-group-ports json
remote-instance-weight-loader-backend text transfer_engine|nccl|modelexpress
remote-instance-weight-loader-start-seed-via-transfer-engine flag
engine-info-bootstrap-port whole
modelexpress-config text
enable-pdmux flag
pdmux-config-path text
sm-group-num whole
config text
enable-broadcast-mm-inputs-process flag
mm-process-config json
mm-enable-dp-encoder flag
limit-mm-data-per-request json
decrypted-config-file text
decrypted-draft-config-file text
enable-prefix-mm-cache flag
enable-mm-global-cache flag
forward-hooks json
"""
