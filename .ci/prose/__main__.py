"""Counts turns of phrase that plain technical English does without, in comments and pages: none may come back.

patterns.txt has a line each: the most there may be, the turn as a regular expression, what to write instead. Counts only fall:
`python3 .ci/prose lower` writes the new ones. What the lab, the fuzzer and checks say is not counted.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATTERNS = HERE / "patterns.txt"
ELSEWHERE = ("crates/lab/", "fuzz/", ".ci/", "bindings/java/bench/")


def prose():
    """Yields the file, the number and the text of each line of prose."""
    listed = subprocess.run(["git", "ls-files", "-z", "*.rs", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if not path.is_file() or (name.endswith(".rs") and name.startswith(ELSEWHERE)):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            text = re.search("//.*", line) if name.endswith(".rs") else re.search(".*", line)
            if text:
                yield name, number, text[0]


def main():
    lines = list(prose())
    failed, kept = False, []
    for row in PATTERNS.read_text().splitlines():
        if not row or row.startswith("#"):
            kept.append(row)
            continue
        most, pattern, instead = row.split("\t")
        turn = re.compile(pattern)
        hits = [(name, number, text) for name, number, text in lines for _ in turn.findall(text)]
        if len(hits) > int(most):
            failed = True
            print(f"prose: {len(hits)} of {pattern}, at most {most}: write {instead}")
            shown = changed(hits) or hits
            for name, number, text in shown[:8]:
                print(f"  {name}:{number}: {text.strip()[:100]}")
        elif len(hits) < int(most):
            print(f"prose: {len(hits)} of {pattern}, {most} before (python3 .ci/prose lower)")
        kept.append("\t".join([str(min(len(hits), int(most))), pattern, instead]))
    if sys.argv[1:] == ["lower"]:
        PATTERNS.write_text("\n".join(kept) + "\n")
    sys.exit(failed)


def changed(hits):
    """Those of hits whose lines are not committed."""
    diff = subprocess.run(["git", "diff", "-U0", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    added = {line[1:].strip() for line in diff.stdout.splitlines() if line.startswith("+")}
    return [hit for hit in hits if any(hit[2].strip() in line for line in added)]


main()
