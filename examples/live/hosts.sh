#!/bin/sh
# Two hosts, tamis-a (10.9.0.1) and tamis-b (10.9.0.2), and tamis-fw between them with the interfaces lan and wan: network
# namespaces, which `up` makes and `down` removes with all that runs in them. Needs root.
set -e
names="tamis-a tamis-fw tamis-b"

remove() {
    for name in $names; do
        [ -e "/run/netns/$name" ] || continue
        ip netns pids "$name" | xargs -r kill 2>/dev/null || true
        ip netns del "$name"
    done
}

case "$1" in
up)
    for name in $names; do
        if [ -e "/run/netns/$name" ]; then
            echo "$name is there already: $0 down" >&2
            exit 1
        fi
    done
    # Whatever fails, nothing is left half made.
    trap remove EXIT
    for name in $names; do ip netns add "$name"; done
    ip link add eth0 netns tamis-a type veth peer name lan netns tamis-fw
    ip link add eth0 netns tamis-b type veth peer name wan netns tamis-fw
    ip -n tamis-a addr add 10.9.0.1/24 dev eth0
    ip -n tamis-b addr add 10.9.0.2/24 dev eth0
    ip -n tamis-a link set eth0 up
    ip -n tamis-b link set eth0 up
    ip -n tamis-fw link set lan up
    ip -n tamis-fw link set wan up
    trap - EXIT
    ;;
down)
    remove
    ;;
*)
    echo "usage: $0 up|down" >&2
    exit 2
    ;;
esac
