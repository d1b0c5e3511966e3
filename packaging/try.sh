#!/usr/bin/env bash
# make dist-try: the Debian package of target/dist in a root of Debian 12 that holds nothing else. It installs, its program
# runs, its manual pages and completions are found, and it leaves nothing when it goes.
#
#   packaging/try.sh [MIRROR]
#
# Needs root and debootstrap. The root is made from the mirror that this machine's apt has, and removed again.
set -euo pipefail
cd "$(dirname "$0")/.."

mirror=${1:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' | grep -m 1 'debian/\?$')}
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase --include=man-db,bash-completion bookworm "$root" "$mirror" >/dev/null

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"; }
step() { echo "try: $*" >&2; }

cp target/dist/tamis_*.deb "$root/tmp"
step "dpkg -i"
inside sh -c 'dpkg -i /tmp/tamis_*.deb' >/dev/null
inside tamis --version
step "tamis demo"
inside sh -c 'cd /tmp && tamis demo | grep VERDICT && test -s demo-report.html'
step "man tamis-replay"
inside sh -c 'man tamis-replay | grep -A 2 "^NAME"'
step "completions of bash"
# What a shell offers after `tamis rep`, by the way that bash-completion takes.
inside bash -c '. /usr/share/bash-completion/bash_completion
    _completion_loader tamis || test $? = 124
    COMP_WORDS=(tamis rep) COMP_CWORD=1 COMP_LINE="tamis rep" COMP_POINT=9
    "$(complete -p tamis | sed "s/.*-F //; s/ .*//")" tamis rep tamis
    echo "${COMPREPLY[@]}"; test "${COMPREPLY[*]}" = replay'
step "units"
inside sh -c 'ls /lib/systemd/system/tamis.service /lib/systemd/system/tamis-tunnel@.service'
step "md5sums, and dpkg -P"
inside dpkg --verify tamis
inside dpkg -P tamis >/dev/null
! inside sh -c 'command -v tamis; ls -d /usr/share/doc/tamis 2>/dev/null' | grep .
step "well"
