#!/bin/sh
# Measures anew what the figures of the studies are drawn from: the documents beside this script. With ten threads, ten
# million packets and all eight presets that takes hours on two cores; PACKETS, RUNS and PRESETS make less of it.
set -eu
here=$(dirname "$0")
bench=target/release/tamis-bench
cargo build --release --bin tamis-bench

measure() {
	name=$1
	shift
	"$bench" "$@" --json >"$here/$name.json.new"
	mv "$here/$name.json.new" "$here/$name.json"
}

packets="--packets ${PACKETS:-10000000}"
runs="--runs ${RUNS:-3}"
# shellcheck disable=SC2086 # options of several words
{
	measure study1 access --profile study1 --only speed-ups --preset "${PRESETS:-1,8}" $packets $runs
	measure study1-stripes access --profile study1 --only stripes $packets $runs
	measure study2 access --profile study2 --only sizes $runs
	measure study2-addresses access --profile study2 --only addresses $runs
	measure study2-settings access --profile study2 --only settings $runs
	measure access-tables access --engine fine,split_ordered --preset 1,3,8
}
for part in linear layouts misses memory fan growth; do
	measure "xtables2-$part" rules --only "$part"
done
# Deletions were measured apart once; now they are in xtables2-growth.json.
rm -f "$here/xtables2-deleted.json"
measure xtables2-ping rules --peers --only ping
