"""What tamis costs that does not depend on load, held to ceilings that only go down: python3 .ci/costs [--lower]

Builds the release program, measures every row of ceilings.txt (never a time), and exits with 1 if one is over its ceiling, or if a
ceiling was raised otherwise than in a commit of its own, or if a row of growth.py is not linear. `--lower` writes the ceilings
that may be lowered. What this machine cannot measure is skipped, and said.
"""
import pathlib
import platform
import resource
import shutil
import subprocess
import sys
import tempfile

import ceilings
import growth
import rows

TAKEN = "# Ceilings were taken with"
TABLE = ".ci/costs/ceilings.txt"
# As `make run`, so that it is built once.
BUILD = ["cargo", "build", "--release", "--bin", "tamis", "--bin", "tamis-costs"]


def build():
    """Builds what is measured, and reports the processor time of it."""
    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    before = spent()
    with subprocess.Popen(BUILD, stderr=subprocess.PIPE, text=True) as cargo:
        compiled = 0
        for line in cargo.stderr:
            compiled += line.lstrip().startswith("Compiling")
            sys.stderr.write(line)
    if cargo.returncode:
        sys.exit(cargo.returncode)
    print(f"build: {spent() - before:.0f} s of processor time, {compiled} crates compiled (a report: nothing is held to it)")


def tools():
    """What counts depend on besides the code: the compiler, valgrind, and whether this processor has what valgrind shows."""
    def said(*command):
        return subprocess.run(command, capture_output=True, text=True).stdout.strip().split("(")[0].strip()
    flags = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    found = [said("rustc", "--version"), said("valgrind", "--version") if shutil.which("valgrind") else "no valgrind",
             platform.machine() + (" with AVX2" if " avx2" in flags else "")]
    return f"{TAKEN} {', '.join(found)}."


def measured(folder):
    """Each row that this machine can measure, with its figure."""
    yield from rows.sizes(folder)
    yield from rows.memory(folder)
    if shutil.which("valgrind"):
        yield from rows.instructions(folder)
    else:
        print("skips: instructions a packet, for want of valgrind (make deps)")


def grown(folder):
    """How each row of growth grows, where valgrind is."""
    if shutil.which("valgrind"):
        return growth.measured(folder)
    print("skips: growth, for want of valgrind (make deps)")
    return ()


def main():
    path = pathlib.Path(TABLE)
    text = path.read_text()
    table = ceilings.read(text)
    wrong = []
    if why := ceilings.smuggled(TABLE, text):
        wrong.append(why)
    build()
    here, there = tools(), next((line for line in text.splitlines() if line.startswith(TAKEN)), "")
    if here != there:
        print(f"costs: {there[2:] or 'no tools are noted;'} Here: {here[len(TAKEN) + 1:]}")
    lower = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, value in grown(pathlib.Path(folder)):
            is_over = value > growth.MOST
            print(f"growth.{name:21} {value:10.2f} of {growth.MOST:>10} times{'  OVER' * is_over}", flush=True)
            if is_over:
                wrong.append(f"growth.{name}: of twice the size the second half takes {value:.2f} times the first")
        for name, value in measured(pathlib.Path(folder)):
            ceiling, unit = table.pop(name, (None, None))
            if unit not in ceilings.MARGINS:
                sys.exit(f"costs: {TABLE}: expected a row {name} with one of the units {', '.join(ceilings.MARGINS)}")
            said = ""
            if ceiling is not None and value > ceiling:
                said = f"  OVER its ceiling by {100 * value / ceiling - 100:.1f} %"
                wrong.append(f"{name}: {value:.0f} {unit}, ceiling {ceiling}")
            elif ceilings.is_low(value, ceiling, unit):
                lower[name] = ceilings.lower_to(value, unit)
                said = f"  lower its ceiling to {lower[name]}"
            print(f"{name:28} {value:10.0f} of {'-' if ceiling is None else ceiling:>10} {unit}{said}", flush=True)
    for name in table:
        print(f"skips: {name}, not measured here")
    if lower and "--lower" in sys.argv:
        path.write_text(ceilings.lowered(text, lower).replace(there or "\n# row", here if there else f"\n{here}\n# row", 1))
    elif lower:
        print("costs: make costs LOWER=1 lowers these ceilings")
    for why in wrong:
        print(f"costs: {why}")
    return bool(wrong)


sys.exit(main())
