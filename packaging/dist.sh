#!/usr/bin/env bash
# make dist: a program for others, into target/dist/: archive, Debian package, container file, bill of materials, and the
# checksums of all of them.
#
#   packaging/dist.sh [TARGET]
#
# TARGET is a target of rustc for this machine's processor. Without one it is that of musl where rustup has it and
# musl-gcc is there: one static program for every Linux of this processor, which cannot load a JVM, so without
# middleboxes in Java. Else it is the machine's own, with them, for systems with its glibc or a later one.
# Needs dpkg-deb, gzip and xz. What comes out depends on the commit alone: its time is that of all files.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "dist: $*" >&2; }

host=$(rustc -vV | sed -n 's/^host: //p')
musl=${host%-gnu}-musl
target=${1:-}
if [ -z "$target" ]; then
    target=$host
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$musl" ]; then
        say "no rustup target $musl (rustup target add $musl): linked with this machine's glibc"
    elif ! command -v musl-gcc >/dev/null; then
        say "no musl-gcc (Debian: musl-tools): linked with this machine's glibc"
    else
        target=$musl
    fi
fi
[ "${target%%-*}" = "${host%%-*}" ] || { say "expected a target for ${host%%-*}, found $target"; exit 2; }

features=() needs=""
case $target in
*-musl) features=(--no-default-features --features live) ;;
*)
    glibc=$(ldd --version | sed -n '1s/.* //p')
    needs="libc6 (>= $glibc), libgcc-s1"
    say "linked with glibc $glibc: for Debian 12 and later where it was built on Debian 12"
    ;;
esac

version=$(cargo pkgid -p tamis | sed 's/.*[#@]//')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
[ -z "$(git status --porcelain 2>/dev/null)" ] || say "the checkout has changes that its commit does not name"

# DPDK is the system's: a program for others does without, so no package that pkg-config knows is linked.
PKG_CONFIG_LIBDIR=/nonexistent cargo build --release --locked --target "$target" "${features[@]}" -p tamis --bin tamis
cargo build --release --locked --target "$target" -p tamis-cloud
tamis=target/$target/release/tamis
cloud=target/$target/release/tamis-cloud
size=$(stat -c %s "$tamis")
say "$tamis: $size bytes"
[ "$size" -lt 10000000 ] || say "that is more than the 10 MB that a program for others should have"

out=target/dist
rm -rf "$out"
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022

# What both the archive and the package hold.
pages() { # FOLDER: manual pages
    "$tamis" man "$1" >/dev/null
}
completions() { # BASH ZSH FISH: a file each
    mkdir -p "$(dirname "$1")" "$(dirname "$2")" "$(dirname "$3")"
    "$tamis" completions bash >"$1"
    "$tamis" completions zsh >"$2"
    "$tamis" completions fish >"$3"
}
aged() { # FOLDER: every file as old as the commit
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# The archive.
name=tamis-$version-$target
tree=$stage/$name
mkdir -p "$tree"
install -m 755 "$tamis" "$cloud" "$tree"
install -m 644 README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT crates/cli/THIRD-PARTY.md "$tree"
pages "$tree/man"
completions "$tree/completions/tamis.bash" "$tree/completions/_tamis" "$tree/completions/tamis.fish"
mkdir "$tree/systemd"
install -m 644 packaging/*.service packaging/bypass.conf "$tree/systemd"
aged "$tree"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" | xz -9 >"$out/$name.tar.xz"

# The Debian package.
arch=$(dpkg --print-architecture)
tree=$stage/deb
doc=$tree/usr/share/doc/tamis
mkdir -p "$tree/DEBIAN" "$tree/usr/bin" "$tree/usr/share/man/man1" "$tree/lib/systemd/system" "$doc/examples"
install -m 755 "$tamis" "$cloud" "$tree/usr/bin"
pages "$tree/usr/share/man/man1"
gzip -9n "$tree"/usr/share/man/man1/*
completions "$tree/usr/share/bash-completion/completions/tamis" \
    "$tree/usr/share/zsh/vendor-completions/_tamis" "$tree/usr/share/fish/vendor_completions.d/tamis.fish"
install -m 644 packaging/*.service "$tree/lib/systemd/system"
install -m 644 packaging/bypass.conf examples/live/live.toml examples/live/rules.v4 examples/ci/cases.toml "$doc/examples"
install -m 644 docs/live.md docs/tunnel.md docs/cloud.md docs/capturing.md crates/cli/THIRD-PARTY.md "$doc"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: tamis"
    echo
    echo "Files: *"
    echo "Copyright: the authors of tamis"
    echo "License: Apache-2.0 or Expat"
    echo
    echo "License: Apache-2.0"
    echo " On Debian systems the text is in /usr/share/common-licenses/Apache-2.0."
    echo
    echo "License: Expat"
    sed 's/^$/./; s/^/ /' LICENSE-MIT
} >"$doc/copyright"
install -m 755 packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm "$tree/DEBIAN"
(cd "$tree" && find usr lib -type f | sort | xargs md5sum) >"$tree/DEBIAN/md5sums"
{
    echo "Package: tamis"
    echo "Version: $version"
    echo "Architecture: $arch"
    echo "Maintainer: the authors of tamis <tamis@localhost>"
    echo "Installed-Size: $(du -k -s --apparent-size "$tree" | cut -f1)"
    [ -z "$needs" ] || echo "Depends: $needs"
    echo "Recommends: iproute2"
    echo "Suggests: tcpdump, bash-completion"
    echo "Section: net"
    echo "Priority: optional"
    echo "Description: what happens to this packet under these rules, and why?"
    echo " Replays a capture against what iptables-save (ip6tables, arptables, ebtables)"
    echo " prints: the verdict of every packet, the counters of every rule, and what"
    echo " decided. The same engine tests rules in CI, filters frames between ports, and"
    echo " runs an encrypted overlay."
} >"$tree/DEBIAN/control"
aged "$tree"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/tamis_${version}_$arch.deb" >/dev/null

# The rest.
install -m 644 packaging/Containerfile "$out"
cargo run --quiet --locked -p tamis-supply sbom "$out/tamis-$version.cdx.json"
(cd "$out" && sha256sum -- * >"$stage/SHA256SUMS")
install -m 644 "$stage/SHA256SUMS" "$out"
say "$("$tamis" --version), for $target:"
ls -l "$out" | awk 'NR > 1 {printf "%10d %s\n", $5, $9}'
