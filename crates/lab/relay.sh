#!/usr/bin/env bash
# A relay of tamis-cloud against plain forwarding of UDP by the same sockets, coturn, derper and a relay of nebula, in one run: hosts a
# and b on networks of their own, the relay between them, in namespaces that go with this script.
#
# What is printed: nanoseconds of processor time that the relay's process took for a datagram, at a rate that all of them
# keep (noise of other programs on the machine hardly shows in it); datagrams and Gbit/s that arrived where a sends as fast as it
# goes; and the time that an echo takes. Needs root, and the binary of tamis-cloud's tests:
#   cargo test -p tamis-cloud --bins --no-run
#   crates/lab/relay.sh target/debug/deps/tamis_cloud-HASH [SECONDS]
# TURNSERVER, DERPER and DERP_LOAD, NEBULA and NEBULA_CERT name programs of others; which of them is not there is said to be missing.
set -euo pipefail

program=${1:?the binary of the tests of tamis-cloud}
seconds=${2:-4}
port=52000
folder=$(mktemp -d)
id=relay$$
relay_pid=
cores=$(nproc)

end() {
    for name in a relay b; do
        ip netns pids "$id-$name" 2>/dev/null | xargs -r kill 2>/dev/null || true
        ip netns del "$id-$name" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap end EXIT

in_() { ip netns exec "$id-$1" "${@:2}"; }
part() { in_ "$1" env RELAY_PART="$2" "$program" --exact workers::figures::a_part --ignored --nocapture -q; }

lay() {
    for name in a relay b; do ip netns add "$id-$name"; in_ "$name" ip link set lo up; done
    local number=1 host
    in_ relay sysctl -qw net.ipv4.ip_forward=1
    for host in a b; do
        in_ relay ip link add "to-$host" type veth peer name eth0 netns "$id-$host"
        in_ relay ip addr add "10.0.$number.254/24" dev "to-$host"
        in_ relay ip link set "to-$host" up
        in_ $host ip addr add "10.0.$number.1/24" dev eth0
        in_ $host ip link set eth0 up
        in_ $host ip route add default via "10.0.$number.254"
        number=$((number + 1))
    done
}

# Nanoseconds that a process was on a processor, with all its threads.
on_cpu() { cat "/proc/$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

start() { # What, until it says so.
    rm -f "$folder/told"
    mkfifo "$folder/stop" 2>/dev/null || true
    part relay "$1" >"$folder/told" 2>&1 <"$folder/stop" &
    exec 9>"$folder/stop"
    until grep -q ready "$folder/told"; do sleep 0.05; done
    relay_pid=$(ip netns pids "$id-relay" | head -1)
}

stop() {
    exec 9>&- || true
    ip netns pids "$id-relay" | xargs -r kill 2>/dev/null || true
    wait 2>/dev/null || true
}

# One row: who, bytes, datagrams in a message of the sender, rate (0: as fast as it goes), the channel's peer or nothing.
row() {
    local who=$1 length=$2 together=$3 rate=$4 channel=${5:-} to=${6:-10.0.1.254:$port}
    part b receive >"$folder/received" 2>&1 &
    local receiver=$!
    until grep -q ready "$folder/received"; do sleep 0.05; done
    local before after sent
    before=$(on_cpu "$relay_pid")
    sent=$(part a "send $to $length $together $seconds $rate${channel:+ $channel}" 2>/dev/null | grep -E '^[0-9]+$')
    wait $receiver || true
    after=$(on_cpu "$relay_pid")
    told "$who" "$length" "$together" "$rate" $((after - before)) "$sent"
}

# Prints a row: who, bytes, together, rate, nanoseconds on a processor, sent; and what was received.
told() {
    grep -E '^[0-9]+ [0-9]+ ' "$folder/received" | awk -v who="$1" -v length_="$2" -v together="$3" \
        -v rate="$4" -v spent="$5" -v sent="$6" '{
            printf "%-12s %5d B  %2d together  rate %7d  sent %9d  arrived %9d  %8.0f/s  %6.2f Gbit/s  %7.0f ns/datagram\n",
                who, length_, together, rate, sent, $1, $3 ? $1 / $3 : 0, $3 ? $2 * 8 / $3 / 1e9 : 0, $1 ? spent / $1 : 0 }'
}

rows() { # Who, the channel's peer, where to.
    row "$1" 200 1 40000 "${2:-}" "${3:-10.0.1.254:$port}"
    row "$1" 1400 32 80000 "${2:-}" "${3:-10.0.1.254:$port}"
    row "$1" 200 1 0 "${2:-}" "${3:-10.0.1.254:$port}"
    row "$1" 1400 32 0 "${2:-}" "${3:-10.0.1.254:$port}"
}

echoes() {
    part b "echo 10.0.2.254:$port" >"$folder/echo" 2>&1 &
    until grep -q ready "$folder/echo"; do sleep 0.05; done
    part a "delay $1 1000" 2>/dev/null | grep -E '^[0-9.]+ [0-9.]+ [0-9]+$' |
        awk -v who="$2" '{ printf "%-12s echo: median %.1f us, 99%% %.1f us, of %d\n", who, $1, $2, $3 }'
    ip netns pids "$id-b" | xargs -r kill 2>/dev/null || true
}

coturn() {
    command -v "${TURNSERVER:-turnserver}" >/dev/null || { echo "coturn       missing"; return; }
    in_ relay "${TURNSERVER:-turnserver}" -n --no-auth --no-tls --no-dtls --no-cli --no-tcp --listening-port $port \
        --listening-ip 10.0.1.254 --relay-ip 10.0.2.254 --log-file stdout --pidfile "$folder/pid" --allow-loopback-peers \
        --realm x -m "$cores" --userdb "$folder/db" >"$folder/turn" 2>&1 &
    sleep 2
    relay_pid=$(ip netns pids "$id-relay" | head -1)
    rows coturn 10.0.2.1:9002
    stop
}

# Both clients of DERP are of one program: DERP_LOAD URL BYTES SECONDS RATE prints what it sent, and what arrived as `receive` does.
derp() {
    [ -x "${DERPER:-}" ] && [ -x "${DERP_LOAD:-}" ] || { echo "derper       missing"; return; }
    in_ relay "$DERPER" -dev -a 10.0.1.254:3340 -http-port -1 -stun=false >"$folder/derper" 2>&1 &
    sleep 3
    relay_pid=$(ip netns pids "$id-relay" | head -1)
    local length rate before after
    for load in "200 40000" "1400 80000" "200 0" "1400 0"; do
        read -r length rate <<<"$load"
        before=$(on_cpu "$relay_pid")
        in_ a "$DERP_LOAD" http://10.0.1.254:3340/derp "$length" "$seconds" "$rate" >"$folder/received" 2>&1 || true
        after=$(on_cpu "$relay_pid")
        told derper "$length" 1 "$rate" $((after - before)) "$(grep -E '^[0-9]+$' "$folder/received")"
    done
    stop
}

# Three nodes of nebula, of which the one between relays: iperf3 sends by it. Datagrams are those inside.
nebula() {
    local nebula=${NEBULA:-nebula} cert=${NEBULA_CERT:-nebula-cert} host address
    command -v "$nebula" >/dev/null && command -v iperf3 >/dev/null || { echo "nebula       missing"; return; }
    in_ relay sysctl -qw net.ipv4.ip_forward=0
    (cd "$folder" && rm -f ./*.crt ./*.key && "$cert" ca -name x)
    for host in relay:10.9.0.3:10.0.1.254 a:10.9.0.1:10.0.1.1 b:10.9.0.2:10.0.2.1; do
        IFS=: read -r host address _ <<<"$host"
        (cd "$folder" && "$cert" sign -name $host -ip "$address/24")
        local lighthouse="am_lighthouse: true" relay="am_relay: true" map=""
        if [ $host != relay ]; then
            lighthouse=$'hosts: ["10.9.0.3"]' relay=$'relays: ["10.9.0.3"]\n  use_relays: true'
            map="\"10.9.0.3\": [\"$([ $host = a ] && echo 10.0.1.254 || echo 10.0.2.254):4242\"]"
        fi
        printf 'pki: {ca: %s/ca.crt, cert: %s/%s.crt, key: %s/%s.key}\nstatic_host_map: {%s}\nlighthouse:\n  %s\nrelay:\n  %s\nlisten: {host: 0.0.0.0, port: 4242}\npunchy: {punch: true}\ntun: {dev: neb, mtu: 1430}\nfirewall: {outbound: [{port: any, proto: any, host: any}], inbound: [{port: any, proto: any, host: any}]}\n' \
            "$folder" "$folder" $host "$folder" $host "$map" "$lighthouse" "$relay" >"$folder/$host.yml"
        in_ $host "$nebula" -config "$folder/$host.yml" >"$folder/$host.log" 2>&1 &
    done
    sleep 3
    relay_pid=$(ip netns pids "$id-relay" | head -1)
    in_ a ping -c 5 -i 0.3 -q 10.9.0.2 >/dev/null || { echo "nebula       no path by its relay"; tail -3 "$folder/a.log"; }
    in_ a ping -c 200 -i 0.005 -q 10.9.0.2 | awk -F/ '/^rtt/ { print "nebula       ping: mean", $5 * 1000, "us" }'
    local load length rate before after
    for load in "200 40000" "1380 80000" "200 0" "1380 0"; do
        read -r length rate <<<"$load"
        in_ b iperf3 -s -1 >/dev/null 2>&1 &
        sleep 0.5
        before=$(on_cpu "$relay_pid")
        in_ a iperf3 -c 10.9.0.2 -u -l "$length" -b $((rate * length * 8)) -t "$seconds" --json >"$folder/iperf" || true
        after=$(on_cpu "$relay_pid")
        python3 - "$folder/iperf" >"$folder/received" <<'END'
import json, sys
it = json.load(open(sys.argv[1]))["end"]["sum"]
arrived = it["packets"] - it["lost_packets"]
print(it["packets"])
print(arrived, round(it["bytes"] * arrived / max(it["packets"], 1)), it["seconds"], 0)
END
        told nebula "$length" 1 "$rate" $((after - before)) "$(head -1 "$folder/received")"
    done
    for host in a b; do ip netns pids "$id-$host" | xargs -r kill 2>/dev/null || true; done
    stop
    in_ relay sysctl -qw net.ipv4.ip_forward=1
}

lay
echoes 10.0.2.1:9002 "no relay"
for round in $(seq "${ROUNDS:-3}"); do
    echo "round $round"
    start "plain 10.0.1.254:$port 10.0.1.1:9001 10.0.2.1:9002"
    rows plain
    stop
    start "trs 10.0.1.254:$port 10.0.1.1:9001 10.0.2.1:9002 1"
    rows trs
    stop
    for which in plain trs; do
        # An echo is from the other network, so the relay's address on that one is its own.
        start "$which 0.0.0.0:$port 10.0.1.1:9001 10.0.2.1:9002 1"
        echoes "10.0.1.254:$port" $which
        stop
    done
    coturn
    derp
    nebula
done
