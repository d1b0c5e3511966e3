#!/bin/sh
# Tries the quick start of docs/java.md as its reader would: from an empty folder, with what is in the local Maven
# repository, on each JDK that is given as a folder, and on that of the path. The library is the one inside the jar, a packet
# has to be dropped by the handler, and nothing may be said on standard error.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The page shows the class that is built.
sed -n '/^```java$/,/^```$/{/^```/d;p;}' "$root/docs/java.md" | sed '/^}$/q' >"$folder/shown.java"
diff "$folder/shown.java" "$here/src/main/java/QuickStart.java"

cp -r "$here/pom.xml" "$here/src" "$here/live.toml" "$here"/rules.v? "$folder"
cp "$root/crates/replay/demo/office.pcap" "$folder/in.pcap"
cd "$folder"
mvn --quiet --batch-mode package

for home in "" "$@"; do
    java=${home:+$home/bin/}java
    rm -rf out.pcapng cache
    XDG_CACHE_HOME=$folder/cache "$java" -jar target/quick-start.jar >said 2>warned || { cat warned; exit 1; }
    version=$("$java" -version 2>&1 | head -n 1)
    if test -s warned; then
        echo "$version warns:"
        cat warned
        exit 1
    fi
    dropped=$(sed -n '1s/.*dropped={middlebox=\([0-9]*\)}.*/\1/p' said)
    test "${dropped:-0}" -gt 0 || { echo "$version: nothing was dropped by the handler:"; cat said; exit 1; }
    test -d cache/tamis && test -s out.pcapng
    echo "quick start on $version: $dropped packets dropped by the handler"
done
