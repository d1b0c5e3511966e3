#!/bin/sh
# Draws the page of a directory: cloud-page.sh TAMIS TAMIS_CLOUD PNG. Needs root, nft and Chromium (`CHROMIUM` names another): a cloud and its
# nodes live in network namespaces meanwhile, each node behind a router; `DARK=1` draws it as a dark screen shows it.
set -eu
tamis=$(realpath "$1")
cloud=$(realpath "$2")
picture=$(realpath "$3")
scratch=$(mktemp -d)
id=page$$
nodes="laptop nas phone printer"
end() {
    for name in cloud net $nodes; do
        for host in "$id-$name" "$id-r-$name"; do
            ip netns pids "$host" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
            ip netns del "$host" 2>/dev/null || true
        done
    done
    rm -rf "$scratch"
}
trap end EXIT
on() {
    host="$id-$1"
    shift
    ip netns exec "$host" "$@"
}
# Two hosts, each with a device and an address.
join() {
    ip -n "$id-$1" link add "$2" type veth peer name "$5" netns "$id-$4"
    ip -n "$id-$1" address add "$3" dev "$2"
    ip -n "$id-$4" address add "$6" dev "$5"
    ip -n "$id-$1" link set "$2" up
    ip -n "$id-$4" link set "$5" up
}
host() {
    ip netns add "$id-$1"
    ip -n "$id-$1" link set lo up
}
host cloud
host net
on net sysctl -qw net.ipv4.ip_forward=1
join cloud eth0 203.0.113.1/24 net cloud 203.0.113.254/24
ip -n "$id-cloud" route add default via 203.0.113.254
number=0
for node in $nodes; do
    number=$((number + 1))
    host "$node"
    host "r-$node"
    join "r-$node" wan "198.51.$number.1/24" net "n$number" "198.51.$number.254/24"
    join "$node" eth0 "10.$number.0.2/24" "r-$node" lan "10.$number.0.1/24"
    on "r-$node" sysctl -qw net.ipv4.ip_forward=1
    ip -n "$id-r-$node" route add default via "198.51.$number.254"
    ip -n "$id-$node" route add default via "10.$number.0.1"
    # Those of phones give each destination another port, so the way stays the relay's.
    how=
    test "$node" != phone || how=random
    on "r-$node" nft "add table ip t; add chain ip t p { type nat hook postrouting priority srcnat; }; add rule ip t p oifname wan masquerade $how;
        add chain ip t i { type filter hook input priority 0; }; add rule ip t i iifname wan drop"
done
cd "$scratch"
"$cloud" all cloud.toml --init --public 203.0.113.1:51900 --domain home.internal >/dev/null
sed -i 's/^\[cloud\]/[cloud]\npage = "127.0.0.1:8080"/' cloud.toml
cat >>cloud.toml <<'END'
[[allow]]
between = ["laptop", "nas"]
[[allow]]
from = ["phone"]
to = ["nas"]
ports = ["tcp/22", "tcp/443", "icmp"]
[[allow]]
from = ["laptop", "phone"]
to = ["printer"]
ports = ["tcp/631", "icmp"]
END
on cloud "$cloud" all cloud.toml >cloud.log 2>&1 &
sleep 1
on cloud "$cloud" enrol $nodes --config cloud.toml >keys
for node in $nodes; do
    line=$(sed -n "/^# $node,/{n;p}" keys | sed "s|^tamis|$tamis|")
    mkdir "$node"
    on "$node" $line --out "$node" --name tam >/dev/null
    sed -i "s|^\[tunnel\]|[tunnel]\ncontrol = \"tam.sock\"|; /^dns = /d; /^search = /d" "$node/tam.toml"
    on "$node" "$tamis" tunnel up "$node/tam.toml" >"$node.log" 2>&1 &
done
sleep 6
ask() {
    on "$1" "$tamis" tunnel why "$2" --tunnel "$1/tam.toml" >/dev/null || true
    on "$1" ping -q -c 3 -i 0.3 "$3" >/dev/null || true
}
ask laptop nas 10.99.0.3
ask laptop printer 10.99.0.5
ask phone nas 10.99.0.3
# Probes of direct paths, each 20 s, show round trips, and the nodes say so each 10 s.
sleep 45
on cloud "${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
    --disable-background-networking --user-data-dir="$scratch/profile" --window-size=1000,"${HEIGHT:-1150}" \
    ${DARK:+--blink-settings=preferredColorScheme=0} --virtual-time-budget=3000 --screenshot="$picture" \
    "http://127.0.0.1:8080/?from=phone&to=nas&port=tcp%2F80#" 2>/dev/null
