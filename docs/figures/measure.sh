#!/bin/sh
# Measures anew what the figures of the studies are drawn from: the documents beside this script. With ten threads, ten
# million packets and all eight presets that takes hours on two cores; PACKETS, RUNS and PRESETS make less of it.
#
# PARTS=DIR measures curves over cores instead: every driver of study 1 and ours, 8 presets, 1 thread to all; sinks, both
# pipelines by split, sizes of tasks, stripes; the cache's grain, where packets are from, the bound; study 2's sizes. Each part ends within
# TIME (600) seconds and is a file of rows in DIR; one that is there is left as it is, so the script goes on where it stopped.
# BENCH=FILE is a program that is built already; QUICK=1 tries all of it in minutes.
set -eu
here=$(dirname "$0")
bench=${BENCH:-target/release/tamis-bench}
[ -n "${BENCH:-}" ] || cargo build --release --bin tamis-bench

measure() {
	name=$1
	shift
	"$bench" "$@" --json >"$here/$name.json.new"
	mv "$here/$name.json.new" "$here/$name.json"
}

# Rows of a part that was cut off by a signal stay beside it, and it begins anew.
part() {
	name=$1
	shift
	[ ! -e "$PARTS/$name.json" ] || return 0
	echo "$name: tamis-bench access $*"
	"$bench" access "$@" --json --for "$SECONDS_A_PART" >"$PARTS/$name.json.part"
	mv "$PARTS/$name.json.part" "$PARTS/$name.json"
}

# 1, 2, 4 … and all.
threads() {
	at=1
	while [ "$at" -lt "$1" ]; do
		printf '%s,' "$at"
		at=$((2 * at))
	done
	echo "$1"
}

# Everything of study 1 and of study 2 that depends on cores.
curves() {
	mkdir -p "$PARTS"
	cores=$(threads "$(nproc)")
	if [ -n "${QUICK:-}" ]; then
		packets=${PACKETS:-20000} presets=1 SECONDS_A_PART=20
	else
		packets=${PACKETS:-10000000} presets="1 2 3 4 5 6 7 8" SECONDS_A_PART=${TIME:-600}
	fi
	setting="--variant C --default accept --packets $packets --runs ${RUNS:-3}"
	for preset in $presets; do
		drivers="--driver all --preset $preset --threads $cores --task 25"
		ours="--engine tamis,cached_exact,cached_epoch,split_ordered --preset $preset --threads $cores"
		for track in a c; do
			part "drivers-$track-$preset" $drivers $setting --track $track
			part "ours-$track-$preset" $ours $setting --track $track
		done
	done
	for sink in shared_map atomics shards; do
		part "sink-$sink" --engine tamis,coarse --preset 1 --threads "$cores" $setting --track c --sink $sink
	done
	some="--engine coarse,fine,optimistic,tamis --preset $(echo $presets | tr " " ,) $setting"
	splits=$(seq -s, 1 "$(($(nproc) > 2 ? $(nproc) - 1 : 1))")
	for model in partial_pipeline phased_pipeline; do
		part "split-$model" $some --orchestration $model --threads "$(($(nproc) > 2 ? $(nproc) : 2))" --split "$splits"
	done
	part tasks $some --orchestration task_pool --task 1,4,16,25,64 --threads "$cores"
	part stripes --engine fine,striped --stripes 1,10,100,1000,10000,100000 --preset 1 --threads "$cores" $setting
	part source --engine tamis --preset 1 --threads "$cores" $setting --track c --source generator
	part source-parts --engine tamis --preset 1 --threads "$cores" $setting --track c --source parts
	part cache --engine tamis,cached_epoch,cached_exact --stamps 16,1024,65536,1048576 --block 1,64,4096 --preset 1 --threads "$cores" $setting
	part bound --bound --preset 1 --threads "$cores" --packets "$packets" --runs "${RUNS:-3}"
	part study2 --profile study2 --only sizes ${QUICK:+--quick}
	part study2-more --profile study2 --only sizes --packets "$packets" --runs 2
}

# shellcheck disable=SC2086 # options of several words
if [ -n "${PARTS:-}" ]; then
	curves
	exit
fi
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
	measure access-one-by-one access --orchestration worker_pool,one_by_one,stream --engine matrix,concurrent_map,striped_map \
		--variant D --default accept --preset 1 --addresses 1024 --threads 8 --track b --sink shared_map --packets 100000 --runs 9
	grains="access --engine optimistic,tamis,cached_epoch,cached_exact --stamps 16,1024,65536,1048576 --block 1,64,4096 --runs 9"
	measure study1-grain $grains --preset 1,8 --packets 300000
	measure study1-grain-pipeline $grains --orchestration partial_pipeline --threads 4 --split 2 --track c --preset 1 --packets 100000
	measure access-hopscotch access --engine fine,split_ordered,hopscotch --preset 1,3,8 --packets 300000 --runs 15
}
# One document of three sizes.
for size in 1000000 10000000 50000000; do
	"$bench" access --engine matrix,concurrent_map,striped_map,tamis --variant D --default accept --preset 1 \
		--addresses 1024 --packets "$size" --runs 5 --json
done >"$here/study2-loads.json.new"
mv "$here/study2-loads.json.new" "$here/study2-loads.json"
# Older than the layout of whole rules; xtables2-lists.json has all.
measure xtables2-lists rules --only misses
for part in linear layouts cycles misses memory fan growth; do
	measure "xtables2-$part" rules --only "$part"
done
# Deletions were measured apart once; now they are in xtables2-growth.json.
rm -f "$here/xtables2-deleted.json"
measure xtables2-ping rules --peers --only ping
# After `make java-bench`; JDKS are homes of JDKs, else the one of `java`.
if [ -f bindings/java/bench/target/benchmarks.jar ]; then
	jdks=
	for jdk in ${JDKS:-}; do jdks="$jdks --jdk $jdk"; done
	# shellcheck disable=SC2086 # options of several words
	measure study4 java $jdks
fi
