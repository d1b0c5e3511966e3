"""The table of ceilings, and the rule that it goes down: what raises a ceiling is a commit of its own, with the reason."""
import re
import subprocess

LINE = re.compile(r"^(\S+)(\s+)(\d+|-)(\s+)(\S+)(\s+\S.*)$")
# How far above what was measured a ceiling is put, and how far below a figure has to fall to lower it, in percent.
# Instructions hardly vary from run to run; memory does, by the kernel's and the allocator's choices.
MARGINS = {"instructions/packet": (1, 2), "kB": (5, 12), "bytes": (1, 2), "crates": (0, 0)}


def read(text):
    """The rows of a table: (ceiling or None, unit) by name."""
    rows = {}
    for line in text.splitlines():
        found = LINE.match(line)
        if found and not line.startswith("#"):
            rows[found[1]] = (None if found[3] == "-" else int(found[3]), found[5])
    return rows


def lower_to(value, unit):
    """The ceiling for what was measured."""
    return round(value * (100 + MARGINS[unit][0]) / 100)


def is_low(value, ceiling, unit):
    """Whether a figure is so far below its ceiling that this is to be lowered."""
    return ceiling is None or value * 100 < ceiling * (100 - MARGINS[unit][1])


def lowered(text, ceilings):
    """The table with these ceilings in place of its own."""
    def line(old):
        found = LINE.match(old)
        if not found or found[1] not in ceilings:
            return old
        new = str(ceilings[found[1]])
        wide = max(1, len(found[2]) + len(found[3]) - len(new))
        return found[1] + " " * wide + new + found[4] + found[5] + found[6]
    return "\n".join(map(line, text.splitlines())) + "\n"


def raised(old, new):
    """The rows that may cost more by the new table than by the old one, or are no longer held to anything."""
    now = read(new)
    was = {name: ceiling for name, (ceiling, _) in read(old).items() if ceiling is not None}
    return [name for name, ceiling in was.items()
            if name not in now or now[name][0] is None or now[name][0] > ceiling]


def git(*arguments):
    done = subprocess.run(["git", *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def smuggled(path, text):
    """Why the working tree, or the last commit that touched the table, may not raise a ceiling as it does."""
    head = git("show", f"HEAD:./{path}")
    up = raised(head, text) if head else []
    others = [line[3:] for line in (git("status", "--porcelain", "-uno", ".") or "").splitlines()
              if not line.endswith(path)]
    if up and others:
        return f"{', '.join(up)}: raised together with {others[0]}; raise them in a commit of their own"
    commit = (git("log", "-1", "--no-merges", "--format=%H", "--", path) or "").strip()
    before, after = (git("show", f"{at}:./{path}") for at in (f"{commit}^", commit))
    up = raised(before, after) if commit and before and after else []
    files = (git("diff-tree", "--no-commit-id", "--name-only", "-r", commit) or "").split() if up else []
    if len(files) > 1:
        return f"{', '.join(up)}: commit {commit[:12]} raised it together with other files"
    if up and not (git("log", "-1", "--format=%b", commit) or "").strip():
        return f"{', '.join(up)}: commit {commit[:12]} raised it and does not say why"
    return None
