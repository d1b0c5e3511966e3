#!/usr/bin/env bash
# A relay of tamis-cloud against plain forwarding of UDP by the same sockets, coturn, tailscale's UDP peer relay and derper, and a relay of
# nebula, in one run: hosts a and b on networks of their own, the relay between them, in namespaces that end with this script.
#
# Each round measures all of them, each time another one first. The relay has RELAY_CPUS (0) for itself, the hosts have HOST_CPUS (1);
# `plain-2` and `tamis-2`, two threads each and 8 flows, have RELAY_CPUS_2 (0,1). Loads:
#   paced       200 bytes, 40,000/s, each datagram on its own
#   paced-long  1,400 bytes, 80,000/s, 32 of them as one message, as a tunnel sends
#   short       200 bytes as fast as the host sends; its device takes no messages of many, so each arrives on its own
#   long        1,400 bytes as fast as the host sends, 32 as one message
# Of each: datagrams and Gbit/s that arrived, and nanoseconds of processor time of the relay's process for a datagram that arrived
# (noise of other programs on the machine hardly shows in it). `delay`: microseconds that an echo of 200 bytes takes, one at a time.
# In the end a table of medians over all rounds. Needs root, and the binary of tamis-cloud's tests:
#   cargo test -p tamis-cloud --bins --no-run
#   ROUNDS=5 crates/lab/relay.sh target/debug/deps/tamis_cloud-HASH [SECONDS]
# TURNSERVER, NEBULA and NEBULA_CERT, DERPER, and RELAYS name programs of others; which of them is not there is said to be missing. RELAYS
# is crates/lab/relays, copied elsewhere and built: go build -mod=mod. ONLY names the wanted ones.
set -euo pipefail

program=${1:?the binary of the tests of tamis-cloud}
seconds=${2:-3}
port=52000
relay=10.0.1.254:$port
folder=$(mktemp -d)
id=relay$$
relay_pid=
relay_cpus=${RELAY_CPUS:-0}
relay_cpus_2=${RELAY_CPUS_2:-0,1}
host_cpus=${HOST_CPUS:-1}
threads=$(taskset -c "$relay_cpus" nproc)

end() {
    for name in relay a b; do
        ip netns pids "$id-$name" 2>/dev/null | xargs -r kill 2>/dev/null || true
        ip netns del "$id-$name" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap end EXIT

# The relay's programs have processors of their own.
in_() {
    local cpus=$host_cpus
    if [ "$1" = relay ]; then cpus=$relay_cpus; fi
    ip netns exec "$id-$1" taskset -c "$cpus" "${@:2}"
}
part() { in_ "$1" env RELAY_PART="$2" "$program" --exact workers::figures::a_part --ignored --nocapture -q; }

lay() {
    for name in relay a b; do ip netns add "$id-$name"; in_ "$name" ip link set lo up; done
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

# Waits for a word in a file.
await() {
    local turn
    for turn in $(seq 200); do
        if grep -q "$2" "$1" 2>/dev/null; then return; fi
        sleep 0.05
    done
    echo "no $2 in $1 after $turn turns:" && cat "$1" && false
}

start() { # A part of ours, until it says so.
    rm -f "$folder/told"
    mkfifo "$folder/stop" 2>/dev/null || true
    part relay "$1" >"$folder/told" 2>&1 <"$folder/stop" &
    exec 9>"$folder/stop"
    await "$folder/told" ready
    relay_pid=$(ip netns pids "$id-relay" | head -1)
}

# Ends what runs in all namespaces.
stop() {
    exec 9>&- || true
    for name in relay a b; do ip netns pids "$id-$name" | xargs -r kill 2>/dev/null || true; done
    wait 2>/dev/null || true
}

bytes_of() { case $1 in *long) echo "${long:-1400}" ;; *) echo 200 ;; esac; }
together_of() { case $1 in paced) echo 1 ;; *) echo 32 ;; esac; }
rate_of() { case $1 in paced) echo 40000 ;; paced-long) echo 80000 ;; *) echo 0 ;; esac; }

# Who, load; then by `"${@:3}" LENGTH TOGETHER RATE` what is sent, while $receiver counts: one line of datagrams, bytes, seconds.
load() {
    local who=$1 load=$2 before after receiving sent
    in_ a ethtool -K eth0 tx-udp-segmentation "$([ "$load" = short ] && echo off || echo on)" 2>/dev/null
    "$receiver" >"$folder/received" 2>&1 &
    receiving=$!
    await "$folder/received" ready
    before=$(on_cpu "$relay_pid")
    sent=$("${@:3}" "$(bytes_of "$load")" "$(together_of "$load")" "$(rate_of "$load")" 2>/dev/null | grep -E '^[0-9]+$' || true)
    wait $receiving || true
    after=$(on_cpu "$relay_pid")
    told "$who" "$load" $((after - before)) "$sent"
}

told() { # Who, load, nanoseconds on a processor, sent; and what was received.
    if ! grep -qE '^[0-9]+ [0-9]+ ' "$folder/received"; then
        missing "$1 $2: $(tail -1 "$folder/received")"
        return
    fi
    grep -E '^[0-9]+ [0-9]+ ' "$folder/received" | awk -v who="$1" -v load_="$2" -v spent="$3" -v sent="$4" '{
        printf "%-12s %-10s sent %9d  arrived %9d  %8.0f /s  %6.3f Gbit/s  %7.0f ns\n",
            who, load_, sent, $1, ($3 > 0 ? $1 / $3 : 0), ($3 > 0 ? $2 * 8 / $3 / 1e9 : 0), ($1 ? spent / $1 : 0) }' | tee -a "$folder/rows"
}

# Who; then what prints median, 99th percentile and count. Whatever else runs on the machine waits meanwhile.
delay() {
    local process
    for process in $(for name in relay a b; do ip netns pids "$id-$name"; done); do
        chrt --fifo --all-tasks --pid 1 "$process" >/dev/null
    done
    (chrt --fifo --pid 1 $BASHPID >/dev/null && "${@:2}") 2>/dev/null | grep -E '^[0-9.]+ [0-9.]+ [0-9]+$' |
        awk -v who="$1" '{ printf "%-12s delay      median %.1f us, 99%% %.1f us, of %d\n", who, $1, $2, $3 }' | tee -a "$folder/rows" || true
}

flows=1
udp_receive() { part b "receive $flows"; }
udp_send() { part a "send $to $1 $2 $seconds $3 $flows $head"; }

# Who; the head of its datagrams at $to.
by_udp() {
    local which
    receiver=udp_receive head=$2
    for which in paced paced-long short long; do load "$1" $which udp_send; done
}

# Who, where b says hello, where a sends to, the head.
echoes() {
    rm -f "$folder/echo"
    part b "echo $2" >"$folder/echo" 2>&1 &
    await "$folder/echo" ready
    delay "$1" part a "delay $3 1000 $4"
    ip netns pids "$id-b" | xargs -r kill 2>/dev/null || true
}

direct() { echoes none 10.0.2.254:9 10.0.2.1:9002 none; }

ours() { # Who, which part, threads, flows.
    local relay_cpus=$relay_cpus
    if [ "$3" = 2 ]; then relay_cpus=$relay_cpus_2; fi
    flows=$4 to=$relay
    start "$2 $relay 10.0.1.1:9001 10.0.2.1:9002 $3 $4"
    by_udp "$1" none
    stop
    flows=1
    if [ "$3" = 2 ]; then return; fi
    # An echo is from the other network, so the relay's address on that one is its own.
    start "$2 0.0.0.0:$port 10.0.1.1:9001 10.0.2.1:9002 $3 $4"
    echoes "$1" 10.0.2.254:$port $relay none
    stop
}

plain() { ours plain plain 1 1; }
tamis() { ours tamis trs 1 1; }
plain-2() { ours plain-2 plain 2 8; }
tamis-2() { ours tamis-2 trs 2 8; }

missing() { echo "missing: $1" | tee -a "$folder/missing"; }

coturn() {
    command -v "${TURNSERVER:-turnserver}" >/dev/null || { missing coturn; return; }
    in_ relay "${TURNSERVER:-turnserver}" -n --no-auth --no-tls --no-dtls --no-cli --no-tcp --listening-port $port \
        --listening-ip 10.0.1.254 --relay-ip 10.0.2.254 --log-file stdout --pidfile "$folder/pid" --allow-loopback-peers \
        --realm x -m "$threads" --userdb "$folder/db" >"$folder/turn" 2>&1 &
    sleep 2
    relay_pid=$(ip netns pids "$id-relay" | head -1)
    to=$relay
    by_udp coturn turn:10.0.2.1:9002
    echoes coturn 10.0.2.254:9 $relay turn:10.0.2.1:9002
    stop
}

# Tailscale's UDP peer relay: 8 bytes of Geneve stand before each datagram, for both hosts.
peer-relay() {
    [ -x "${RELAYS:-}" ] || { missing peer-relay; return; }
    rm -f "$folder/told"
    in_ relay "$RELAYS" peer-relay $port >"$folder/told" 2>&1 &
    await "$folder/told" ready
    relay_pid=$(ip netns pids "$id-relay" | head -1)
    local key vni head
    read -r _ key vni <<<"$(grep ready "$folder/told")"
    head=$(in_ a "$RELAYS" bind "$key" "$vni" $relay 0 9001)
    # It answers from the address that its routes say.
    in_ b "$RELAYS" bind "$key" "$vni" 10.0.2.254:$port 1 9002 >/dev/null
    to=$relay
    by_udp peer-relay "$head"
    echoes peer-relay 10.0.2.254:$port $relay "$head"
    stop
}

# By plain HTTP: TLS would cost it more. Both clients are one program, which waits for frames that are on their way.
derper() {
    [ -x "${DERPER:-}" ] && [ -x "${RELAYS:-}" ] || { missing derper; return; }
    in_ relay env HOME="$folder" "$DERPER" -dev -a :3340 -http-port -1 -stun=false >"$folder/derper" 2>&1 &
    await "$folder/derper" "serving"
    relay_pid=$(ip netns pids "$id-relay" | head -1)
    local which before derp=http://10.0.1.254:3340/derp
    for which in paced paced-long short long; do
        before=$(on_cpu "$relay_pid")
        in_ a "$RELAYS" derp-load $derp "$(bytes_of $which)" "$seconds" "$(rate_of $which)" >"$folder/received" 2>&1 || true
        told derper $which $(($(on_cpu "$relay_pid") - before)) "$(grep -E '^[0-9]+$' "$folder/received" || true)"
    done
    rm -f "$folder/echo"
    in_ b "$RELAYS" derp-echo $derp >"$folder/echo" 2>&1 &
    await "$folder/echo" ready
    delay derper in_ a "$RELAYS" derp-delay $derp 1000
    stop
}

node() { # A host of nebula: its name, address inside, and section of what it is to the others.
    (cd "$folder" && "$cert" sign -name "$1" -ip "$2/24")
    printf 'pki: {ca: %s/ca.crt, cert: %s/%s.crt, key: %s/%s.key}\nlisten: {host: 0.0.0.0, port: 4242}\npunchy: {punch: true}\ntun: {dev: neb, mtu: 1430}\n' \
        "$folder" "$folder" "$1" "$folder" "$1" >"$folder/$1.yml"
    printf 'firewall: {outbound: [{port: any, proto: any, host: any}], inbound: [{port: any, proto: any, host: any}]}\n%s\n' \
        "$3" >>"$folder/$1.yml"
    in_ "$1" "${NEBULA:-nebula}" -config "$folder/$1.yml" >"$folder/$1.log" 2>&1 &
}

# Three nodes of nebula, of which the one between relays. Datagrams are those inside, which a and b seal and open; 20 bytes less fit.
nebula() {
    local cert=${NEBULA_CERT:-nebula-cert} host long=1380
    command -v "${NEBULA:-nebula}" >/dev/null || { missing nebula; return; }
    in_ relay sysctl -qw net.ipv4.ip_forward=0
    (cd "$folder" && rm -f ./*.crt ./*.key && "$cert" ca -name x)
    node relay 10.9.0.3 $'static_host_map: {}\nlighthouse: {am_lighthouse: true}\nrelay: {am_relay: true}'
    for host in a:10.9.0.1:10.0.1.254 b:10.9.0.2:10.0.2.254; do
        IFS=: read -r host inside outside <<<"$host"
        node "$host" "$inside" "static_host_map: {\"10.9.0.3\": [\"$outside:4242\"]}
lighthouse: {hosts: [\"10.9.0.3\"]}
relay: {relays: [\"10.9.0.3\"], use_relays: true}"
    done
    sleep 3
    relay_pid=$(ip netns pids "$id-relay" | head -1)
    if in_ a ping -c 5 -i 0.3 -q 10.9.0.2 >/dev/null; then
        to=10.9.0.2:9002
        receiver=nebula_receive head=none
        for which in paced paced-long short long; do load nebula $which udp_send; done
        echoes nebula 10.9.0.1:9 10.9.0.2:9002 none
    else
        missing "nebula (no path by its relay)"
    fi
    stop
    in_ relay sysctl -qw net.ipv4.ip_forward=1
}
nebula_receive() { udp_receive; }

# Medians over the rounds, and in brackets as parts of plain's: rates and processor time of the load, as fast as the host sends or paced,
# of which more arrived; what an echo takes more than without a relay.
medians() {
    awk '
        function median(list, count, i, j, kept) {
            for (i = 2; i <= count; i++) {
                kept = list[i]
                for (j = i - 1; j > 0 && list[j] > kept; j--) list[j + 1] = list[j]
                list[j + 1] = kept
            }
            return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
        }
        function of(what, list, parts, i, count) {
            count = split(values[what], parts, " ")
            for (i = 1; i <= count; i++) list[i] = parts[i] + 0
            return count ? median(list, count) : 0
        }
        !($1 in seen) { seen[$1] = 1; order[++rows] = $1 }
        $2 == "delay" { values[$1, "p50"] = values[$1, "p50"] " " $4; values[$1, "p99"] = values[$1, "p99"] " " $7; next }
        { values[$1, $2, "rate"] = values[$1, $2, "rate"] " " $7; values[$1, $2, "gbit"] = values[$1, $2, "gbit"] " " $9
          values[$1, $2, "ns"] = values[$1, $2, "ns"] " " $11 }
        # The median of a column of the load of two of which more arrived.
        function best(who, what, one, other) {
            return of(who SUBSEP (of(who SUBSEP one SUBSEP "rate") < of(who SUBSEP other SUBSEP "rate") ? other : one) SUBSEP what)
        }
        function part(value, whole) { return whole > 0 ? sprintf("%.0f (%.2f)", value, value / whole) : sprintf("%.0f", value) }
        END {
            print "| relay | 200 bytes, /s (of plain) | ns | 1,400 bytes, Mbit/s | ns | echo, us | 99 % | added |"
            print "|---|---|---|---|---|---|---|---|"
            for (i = 1; i <= rows; i++) {
                who = order[i]
                base = who ~ /-2$/ ? "plain-2" : "plain"
                printf "| %s | %s | %s | %s | %s | %.0f | %.0f | %s |\n", who,
                    part(best(who, "rate", "short", "paced"), best(base, "rate", "short", "paced")),
                    part(best(who, "ns", "short", "paced"), best(base, "ns", "short", "paced")),
                    part(1000 * best(who, "gbit", "long", "paced-long"), 1000 * best(base, "gbit", "long", "paced-long")),
                    part(best(who, "ns", "long", "paced-long"), best(base, "ns", "long", "paced-long")),
                    of(who SUBSEP "p50"), of(who SUBSEP "p99"),
                    part(of(who SUBSEP "p50") - of("none" SUBSEP "p50"), of("plain" SUBSEP "p50") - of("none" SUBSEP "p50"))
            }
        }' "$folder/rows"
    sort -u "$folder/missing" 2>/dev/null || true
}

read -ra all <<<"${ONLY:-direct plain tamis plain-2 tamis-2 coturn peer-relay derper nebula}"
lay
touch "$folder/rows"
for round in $(seq "${ROUNDS:-3}"); do
    echo "round $round"
    for number in $(seq 0 $((${#all[@]} - 1))); do
        "${all[(number + round - 1) % ${#all[@]}]}"
    done
done
medians
