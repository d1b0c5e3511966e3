#!/usr/bin/env bash
# Compares tamis with this machine's kernel for hours: slice after slice, each with a seed of its own.
# A row for each is added to docs/conformance-runs.md as soon as it has ended, so a soak that is
# ended early has its figures, too. What differs is kept in target/soak; the soak goes on, and fails at its end.
#
#     crates/lab/soak.sh PACKETS CONVERSED [PLAYS]      packets of both families, then those in conversations,
#                                                       then so many plays of all scenes of real programs
#
# SLICE and CONVERSED_SLICE: packets of a slice; SEED: the first one's seed (the time, unless told). Root; the programs
# are built by `make soak`, which installs what the scenes call.
set -euo pipefail
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
[ $# = 2 ] || [ $# = 3 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
packets=$1 conversed=$2 plays=${3:-0}
slice=${SLICE:-20000000} conversed_slice=${CONVERSED_SLICE:-500000} seed=${SEED:-$(date +%s)}
programs=${CARGO_TARGET_DIR:-target}/release page=docs/conformance-runs.md kept=target/soak
mkdir -p "$kept"

[ -e "$page" ] || cat >"$page" <<'PAGE'
# Runs against the kernel

Written by `make soak`; not by hand. Each row is a slice with random rulesets and packets of its own seed: `oracle --packets N
--seed S` or `oracle --state N --seed S`, N half of the packets, for each family.

| date | kernel | what | seed | packets | differences |
|---|---|---|---:|---:|---:|
PAGE

failed=0
# What it is, its seed, and the command.
compare() {
    local what=$1 seed=$2 log=$kept/log.$$ status=0 compared
    shift 2
    "$@" >"$log" 2>&1 || status=$?
    # 3: this machine cannot be asked.
    [ $status != 3 ] || { tail -n 1 "$log"; exit 3; }
    compared=$(awk '/ packets in .*\/s$/ {sum += $1} / rulesets, [0-9]+ packets,/ {
        for (at = 2; at <= NF; at++) if ($at == "packets,") sum += $(at - 1) } END {print sum + 0}' "$log")
    [ $status = 0 ] || { failed=1; cp "$log" "$kept/$what-$seed.log"; }
    local differences=0
    [ $status = 0 ] || differences="$(grep -c '^=== ruleset' "$log" || true) (target/soak/$what-$seed.log)"
    printf '| %s | %s | %s | %s | %s | %s |\n' "$(date -u +%F)" "$(uname -r | cut -d- -f1)" "$what" "$seed" \
        "$compared" "$differences" | tee -a "$page"
}

# Packets are those of each family.
for ((done = 0; done < packets; done += slice)); do
    compare stateless "$((seed += 1))" "$programs/oracle" --packets "$((slice / 2))" --seed "$seed" \
        --cases "$kept/cases.$$"
done
for ((done = 0; done < conversed; done += conversed_slice)); do
    compare conversations "$((seed += 1))" "$programs/oracle" --state "$((conversed_slice / 2))" --seed "$seed"
done
# Ports, sequence numbers and times are the programs' own in every play; frames are shuffled by those times.
for ((play = 1; play <= plays; play += 1)); do
    log=$kept/play.$$ status=0
    "$programs/programs" --tamis "$programs/tamis" --out "$kept/plays" >"$log" 2>&1 || status=$?
    [ $status != 3 ] || { tail -n 1 "$log"; exit 3; }
    wrong=$(awk '/ counters / {for (at = 2; at < NF; at++) if ($at == "wrong") sum += $(at + 1)} END {print sum + 0}' "$log")
    counters=$(awk '/ counters / {for (at = 2; at < NF; at++) if ($at == "counters") sum += $(at + 1)} END {print sum + 0}' "$log")
    [ $status = 0 ] || { failed=1 seed=$((seed += 1)); cp "$log" "$kept/play-$seed.log"; wrong="$wrong (target/soak/play-$seed.log)"; }
    printf '| %s | %s | real programs | - | %s counters | %s |\n' "$(date -u +%F)" "$(uname -r | cut -d- -f1)" "$counters" \
        "$wrong" | tee -a "$page"
done
exit $failed
