#!/bin/sh
# A stand-in for an engine: start.sh PHASE die|hang [LINE] writes what SGLang 0.5.9 writes up to that phase (sglang/srt/model_executor), then LINE, and dies or hangs in it.
say() { echo "[2026-12-01 00:00:00 TP0] $1" >&2; }
reach() {
    [ "$1" = starting ] && return
    say "Init torch distributed begin."
    [ "$1" = connecting ] && return
    echo "llamacpp-server: loading /srv/models/m.gguf" >&2 # what the launcher of llama.cpp would write
    say "Load weight begin. avail mem=94.08 GB"
    echo "Loading safetensors checkpoint shards:  23% Completed | 11/47 [00:02<00:08,  4.10it/s]" >&2
    [ "$1" = loading ] && return
    say "Load weight end. elapsed=36.20 s, type=GlmMoeDsaForCausalLM, dtype=torch.bfloat16, avail mem=37.01 GB, mem usage=57.06 GB."
    [ "$1" = allocating ] && return
    say "Running FlashInfer autotune..."
    [ "$1" = compiling ] && return
    say "Capture cuda graph begin. This can take up to several minutes. avail mem=9.21 GB"
    printf '\rCapturing batches (bs=32 avail_mem=9.10 GB):   0%%|| 0/35\rCapturing batches (bs=16 avail_mem=9.02 GB):  20%%|| 7/35 [00:02<00:08,  3.1it/s]\n' >&2
    [ "$1" = capturing ] && return
    echo "[2026-12-01 00:00:00] INFO:     Application startup complete." >&2
    [ "$1" = warming ] && return
    echo "[2026-12-01 00:00:00] The server is fired up and ready to roll!" >&2
}
reach "$1"
[ -z "$3" ] || echo "$3" >&2
[ "$2" = hang ] || exit 3
exec sleep 300
