#!/usr/bin/env bash
# Builds the fuzzer and runs every target, or those named, for SECONDS_EACH (60) seconds each.
# What it finds lies in fuzz/found/TARGET; move a crasher to fuzz/corpus/TARGET/crash-NAME when it is fixed.
set -euo pipefail
cd "$(dirname "$0")"
# What cargo-fuzz would pass: coverage for libFuzzer. These are stable flags; no sanitizer is needed where
# unsafe code is forbidden.
export RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
target=$(rustc -vV | sed -n 's/^host: //p')
cargo build --release --target "$target"
if [ $# -gt 0 ]; then targets=("$@"); else targets=(parse capture save bpf rules sets host control tunnel admission envelope pending signaling names tables conversations sightings cost nft); fi
for name in "${targets[@]}"; do
    mkdir -p "found/$name"
    dict=()
    case $name in save | rules | tables | cost) dict=(-dict=words.dict) ;; esac
    echo "== $name"
    TAMIS_FUZZ=$name "${CARGO_TARGET_DIR:-target}/$target/release/tamis-fuzz" "found/$name" "corpus/$name" \
        -max_total_time="${SECONDS_EACH:-60}" -timeout=10 -rss_limit_mb=2048 -max_len=8192 \
        -artifact_prefix="found/$name/crash-" -print_final_stats=1 "${dict[@]}" 2>&1 |
        tail -n "${TAIL:-12}"
done
