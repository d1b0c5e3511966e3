#!/bin/sh
# Two hosts, a (10.9.0.1) and b (10.9.0.2), and fw between them with the interfaces lan and wan: network namespaces,
# which `up` makes and `down` removes with all that runs in them. Needs root.
set -e
case "$1" in
up)
    for name in a fw b; do ip netns add "$name"; done
    ip link add eth0 netns a type veth peer name lan netns fw
    ip link add eth0 netns b type veth peer name wan netns fw
    ip -n a addr add 10.9.0.1/24 dev eth0
    ip -n b addr add 10.9.0.2/24 dev eth0
    ip -n a link set eth0 up
    ip -n b link set eth0 up
    ip -n fw link set lan up
    ip -n fw link set wan up
    ;;
down)
    for name in a fw b; do
        ip netns pids "$name" | xargs -r kill 2>/dev/null || true
        ip netns del "$name"
    done
    ;;
*)
    echo "usage: $0 up|down" >&2
    exit 2
    ;;
esac
