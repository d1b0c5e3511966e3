#!/usr/bin/env bash
# Breaks the code on purpose, one patch of this folder after the other, and has the test that each names tell.
#
#     crates/lab/mutants/run.sh [NAME...]      all, or those whose names begin so
#
# A patch begins with what it breaks, and `Told by:` the command that has to fail: by a test that fails, or by one that
# has not ended after LIMIT seconds (300), as where threads wait for ever. Every command has to pass without a patch.
# The tree is a copy under target/mutants, so nothing that is being worked on is touched.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(git -C "$here" rev-parse --show-toplevel 2>/dev/null) ||
    { echo "SKIPPED: mutants are made of what git knows, and this is no clone"; exit 0; }
work=${CARGO_TARGET_DIR:-$root/target}/mutants
limit=${LIMIT:-300}
mkdir -p "$work"
log=$work/log

# Files keep their times, so that only what changed is built again; a file that has moved must not stay at its old place.
rm -rf "$work/tree"
mkdir "$work/tree"
(cd "$root" && git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
    tar --null -T - -cf -) | tar -C "$work/tree" -xf -
cd "$work/tree"
export CARGO_INCREMENTAL=0

# A command's own target directory: what --cfg makes of the code is another code.
run() {
    local place=plain
    case $1 in *"--cfg orders"*) place=orders ;; *"--cfg loom"*) place=loom ;; *"--cfg pauses"*) place=pauses ;; esac
    CARGO_TARGET_DIR=$work/$place timeout --kill-after=5 "$2" bash -c "$1" >"$log" 2>&1
}

chosen() {
    [ $# -gt 1 ] || return 0
    local name=$1 wanted
    shift
    for wanted in "$@"; do case $name in "$wanted"*) return 0 ;; esac; done
    return 1
}

patches=()
for patch in "$here"/*.patch; do
    chosen "$(basename "$patch" .patch)" "$@" && patches+=("$patch")
done
[ ${#patches[@]} -gt 0 ] || { echo "mutants: no patch whose name begins with $*" >&2; exit 2; }

told_by() { sed -n 's/^Told by: //p' "$1"; }

for patch in "${patches[@]}"; do told_by "$patch"; done | sort -u | while IFS= read -r command; do
    echo "unbroken: $command"
    run "$command" 1800 || { echo "mutants: it fails without a patch:" >&2; tail -n 30 "$log" >&2; exit 1; }
    # A filter that finds nothing passes, too.
    grep -qE '^test result: ok\. [1-9]' "$log" || { echo "mutants: it runs no test" >&2; exit 1; }
done

survivors=()
for patch in "${patches[@]}"; do
    name=$(basename "$patch" .patch) command=$(told_by "$patch")
    patch --silent --strip=0 --input="$patch" || { echo "mutants: $name no longer applies" >&2; exit 1; }
    began=$SECONDS status=0
    # To be built is no part of the limit.
    run "$command --no-run" 1800 || { echo "mutants: $name does not build:" >&2; tail -n 30 "$log" >&2; exit 1; }
    run "$command" "$limit" || status=$?
    patch --silent --strip=0 --reverse --input="$patch"
    case $status in
    0) survivors+=("$name") verdict="SURVIVED" ;;
    124 | 137) verdict="told: it does not end" ;;
    *)
        grep -qE '^test .* FAILED|has overflowed|SIGABRT' "$log" || { tail -n 30 "$log" >&2; exit 1; }
        failed=$(grep -cE '^test .* FAILED' "$log" || true)
        # Loom ends the process where threads wait for each other.
        verdict="told: $([ "$failed" = 0 ] && echo it aborts || echo "$failed tests fail")"
        ;;
    esac
    printf '%-32s %-24s %4d s  %s\n' "$name" "$verdict" $((SECONDS - began)) "$(head -n 1 "$patch")"
done
[ ${#survivors[@]} -eq 0 ] || { echo "mutants: nothing tells ${survivors[*]}" >&2; exit 1; }
