#!/bin/sh
# Draws the page of README's review: picture.sh TAMIS PNG. Needs Chromium; `CHROMIUM` names another.
set -eu
tamis=$(realpath "$1")
picture=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The commands of README, which end with 3 because verdicts change.
sed -n '/<!-- review.sh: begin/,/<!-- review.sh: end/p' README.md | grep -v -e '^```' -e '^<!--' >"$scratch/review.sh"
ln -s "$tamis" "$scratch/tamis"
(cd "$scratch" && PATH="$scratch:$PATH" sh -e review.sh >/dev/null) || test $? -eq 3
"${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
    --disable-background-networking --user-data-dir="$scratch/profile" --window-size=1000,600 \
    --virtual-time-budget=3000 --screenshot="$picture" "file://$scratch/review.html" 2>/dev/null
