# The stage on which every scene plays: read before the scene's own text, by a bash that is the first process of
# its own mount, PID and network namespace. Whatever a scene starts, names or mounts ends with that process.
#
# A scene defines `setup` (namespaces, links, programs that serve), `rules` (loads them in r) and `traffic`, and may
# define `before` (what happens between the rules and the start of the captures: then counters are zeroed) and `again`
# (a second part of the traffic, recorded from its beginning, too, after `change` if there is one).
# The firewall is always the namespace r. $out is where the recording goes, $lab a folder for the scene's own files;
# $snap and $big make captures small.
set -uo pipefail
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/lab /run/sshd
lab=/run/lab
python=/usr/bin/python3
ping_fast="-q -i 0.05 -W 1"

# Namespaces by name, quiet ones: no duplicate address detection to wait for, no solicitations of routers.
ns() {
    local name
    for name; do
        ip netns add "$name"
        ip -n "$name" link set lo up
        at "$name" sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0 \
            net.ipv6.conf.default.router_solicitations=0 net.ipv4.ping_group_range="0 2147483647"
    done
}

at() { local name=$1; shift; ip netns exec "$name" "$@"; }

# A cable: wire NS DEV NS DEV.
wire() {
    ip link add "$2" netns "$1" type veth peer name "$4" netns "$3"
    ip -n "$1" link set "$2" up
    ip -n "$3" link set "$4" up
}

# addr NS DEV ADDRESS...
addr() {
    local name=$1 dev=$2 one; shift 2
    for one; do ip -n "$name" addr add "$one" dev "$dev"; done
}

# A host on a cable to the firewall, which is its gateway: host NS DEVICE-OF-R ADDRESS GATEWAY [ADDRESS...].
host() {
    wire "$1" eth0 r "$2"
    addr "$1" eth0 "$3" "${@:5}"
    addr r "$2" "$4/${3#*/}"
    ip -n "$1" route add default via "$4"
}

forwarding() {
    at "$1" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
}

# A web server, nginx where it is installed: web NS PORT... serves /small (1 kB) and /big (3 MB, or $big).
web() {
    local name=$1 port; shift
    mkdir -p $lab/www
    [ -e $lab/www/big ] || { head -c "${big:-3000000}" /dev/zero >$lab/www/big; head -c 1000 /dev/zero >$lab/www/small; }
    {
        echo "pid $lab/nginx-$name.pid; error_log $lab/nginx-$name.log; worker_processes 1; daemon on;"
        echo "events { worker_connections 256; }"
        echo "http { access_log off; client_body_temp_path $lab/nb; proxy_temp_path $lab/np;"
        echo "fastcgi_temp_path $lab/nf; uwsgi_temp_path $lab/nu; scgi_temp_path $lab/ns; server { root $lab/www;"
        for port; do echo "listen $port; listen [::]:$port;"; done
        echo "} }"
    } >"$lab/nginx-$name.conf"
    if [ -n "$(command -v nginx)" ]; then
        at "$name" nginx -c "$lab/nginx-$name.conf" 2>>"$lab/nginx.err"
    else
        for port; do at "$name" python3 -m http.server --bind :: --directory $lab/www "$port" 2>>"$lab/web.err" & done
    fi
}

# A name server: names NS answers every name of example.net with 192.0.2.80 and 2001:db8::80.
names() {
    at "$1" dnsmasq --no-daemon --no-resolv --no-hosts --conf-file=/dev/null --pid-file= --user=root \
        --address=/example.net/192.0.2.80 --address=/example.net/2001:db8::80 >"$lab/dnsmasq-$1.log" 2>&1 &
}

# Says again what it hears, by TCP and UDP: echoing NS PORT.
echoing() {
    at "$1" socat "TCP-LISTEN:$2,fork,reuseaddr" EXEC:cat &
    at "$1" socat "UDP-LISTEN:$2,fork,reuseaddr" EXEC:cat &
    listens "$1" "$2"
    listens "$1" "$2" udp
}

# A flow that says so many lines, falls silent, and says five more once `go` is called: flow NS tcp|udp HOST PORT LINES.
flows=0
flow() {
    flows=$((flows + 1))
    at "$1" $python - "${@:2}" 2>>$lab/flow.err <<'P' &
import os, socket, sys, time
kind, host, port, lines = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
s.settimeout(1)
def say(line):
    try: s.send(line); s.recv(100)
    except OSError: pass
try:
    s.connect((host, port))
    for turn in range(lines): say(b"before")
finally:
    open("/run/lab/flowing", "a").write("x")
while not os.path.exists("/run/lab/go"): time.sleep(0.01)
for turn in range(5):
    say(b"after"); time.sleep(0.02)
s.close()
P
}

# Waits until every flow has said its first lines.
flowing() {
    local turn
    for turn in $(seq 100); do
        [ "$(stat -c %s $lab/flowing 2>/dev/null || echo 0)" = $flows ] && return
        sleep 0.05
    done
    echo "flows did not begin" >&2
}

go() { touch $lab/go; }

get() { at "$1" curl -sS -o /dev/null --connect-timeout 1 --max-time 4 "${@:2}"; }
look_up() { at "$1" dig +tries=1 +time=1 +short "@$2" example.net "${3:-A}" >/dev/null; }
echoes() { at "$1" ping $ping_fast -c "$3" "${@:4}" "$2" >/dev/null; }

# Tries ports: knock NS ADDRESS PORT...
knock() {
    local name=$1 host=$2 port; shift 2
    for port; do at "$name" timeout 0.3 bash -c "</dev/tcp/$host/$port" 2>/dev/null; done
}

# Waits until something listens: listens NS PORT [udp].
listens() {
    local turn kind=-tlnH
    [ "${3:-}" = udp ] && kind=-ulnH
    for turn in $(seq 100); do
        [ -n "$(at "$1" ss $kind "sport = :$2")" ] && return
        sleep 0.03
    done
    echo "nothing listens on $2 in $1" >&2
}

legacy_rules() { at r iptables-legacy-restore -c; }
legacy_rules6() { at r ip6tables-legacy-restore -c; }
before() { :; }

# Sets every counter of r back: for rules that were there before the capture.
zero() {
    local table
    for table in $(at r cat /proc/net/ip_tables_names); do at r iptables-legacy -t "$table" -Z; done
    for table in $(at r cat /proc/net/ip6_tables_names); do at r ip6tables-legacy -t "$table" -Z; done
}

save4() { at r iptables-legacy-save -c; }
save6() { at r ip6tables-legacy-save -c; }

# Tables of nft, which a scene with `uses_nft` has; $nft_tables names those whose counters are compared (all), $has_legacy
# says that iptables-legacy has further tables than `save4` prints.
nft_tables=("")
nft_rules() { at r nft -f -; }
nft_alone() {
    uses_nft=1
    save4() { at r iptables-nft-save -c; }
    save6() { at r ip6tables-nft-save -c; }
}
counters_nft() {
    local table
    for table in "${nft_tables[@]}"; do
        if [ -z "$table" ]; then at r nft list ruleset; else at r nft list table $table; fi
    done
}

# arptables-legacy-save asks whatever is called arptables, and prints no counters; these two list by themselves.
save_arp() { sed 's|/usr/sbin/arptables|/usr/sbin/arptables-legacy|' /usr/sbin/arptables-legacy-save | at r perl; }
counters_arp() {
    echo '*filter'
    at r arptables-legacy -L -n -v | sed -n \
        -e '/^Chain/h' \
        -e 's/^Chain \([^ ]*\) (policy \([A-Z]*\) \([0-9]*\) packets, \([0-9]*\) bytes).*/:\1 \2 [\3:\4]/p' \
        -e '/pcnt=/{G;s/^\(.*[^ ]\) *, pcnt=\([0-9]*\) -- bcnt=\([0-9]*\).*Chain \([^ ]*\).*/[\2:\3] -A \4 \1/p}'
    echo COMMIT
}

# What a host folder holds, as the commands print it: host_folder NAME. An empty file says nothing and is left out, but for the list of
# connections: there are none.
host_folder() {
    local dir=$out/$1
    mkdir -p "$dir"
    save4 >"$dir/iptables.save"
    save6 >"$dir/ip6tables.save"
    [ -n "${uses_arp:-}" ] && save_arp >"$dir/arptables.save"
    if [ -n "${uses_nft:-}" ]; then
        at r nft -j list ruleset >"$dir/nft.json"
        at r nft list ruleset >"$dir/rules.nft"
        uname -srv >"$dir/uname.txt"
    fi
    if [ -n "${has_legacy:-}" ]; then
        at r iptables-legacy-save -c >"$dir/iptables-legacy.save"
        at r ip6tables-legacy-save -c >"$dir/ip6tables-legacy.save"
    fi
    at r ipset save >"$dir/ipset.save" 2>/dev/null
    { at r ip -4 route show table all; at r ip -6 route show table all; } >"$dir/routes.txt"
    { at r ip -4 rule; at r ip -6 rule; } >"$dir/rule.txt"
    at r ip -d -o link >"$dir/links.txt"
    at r ip -o addr >"$dir/addresses.txt"
    at r ip neigh >"$dir/neigh.txt"
    at r ip maddr >"$dir/maddr.txt"
    at r bridge -o link >"$dir/bridge.txt"
    at r sysctl net.ipv4 net.ipv6 net.bridge net.netfilter >"$dir/sysctl.txt" 2>/dev/null
    { at r conntrack -L -f ipv4; at r conntrack -L -f ipv6; } >"$dir/conntrack.txt" 2>/dev/null
    find "$dir" -type f -empty ! -name conntrack.txt -delete
    [ -n "${unlisted:-}" ] && rm -f "$dir/conntrack.txt"
    if declare -F folder_too >/dev/null; then folder_too "$dir"; fi
}

# A tap in the background, and the line by which it says that it listens: tap FILE LINE PROGRAM...
listeners=() waited=()
tap() {
    ip netns exec r "${@:3}" 2>"$lab/$1.log" &
    listeners+=($!)
    waited+=("$lab/$1.log:$2")
}

listen() { tap "$1" 'listening on' tcpdump -Z root -B 32768 -s "${snap:-262144}" -n -w "$out/$1" "${@:2}"; }

listening() {
    local one turn
    for one in "${waited[@]}"; do
        for turn in $(seq 1000); do
            grep -qs "${one#*:}" "${one%%:*}" && continue 2
            sleep 0.02
        done
        echo "a capture did not start: ${one%%:*}" >&2
        exit 4
    done
}

# A promiscuous bridge has the kernel route packets that it would not have seen, so bridges are not.
recording() {
    local dev calm devices=()
    listen any.pcap -i any
    listen in.pcap -i any -Q in
    [ -n "${nflog:-}" ] && listen nflog.pcap -i "nflog:$nflog"
    for dev in $(at r ip -o link show up | sed 's/^[0-9]*: \([^:@]*\).*/\1/'); do
        calm=
        at r test -d "/sys/class/net/$dev/bridge" && calm=-p
        listen "$dev.pcap" -i "$dev" $calm
        devices+=(-i "$dev" $calm)
    done
    if declare -F again >/dev/null; then
        snap=96 listen short.pcap -i any
        [ -z "$(command -v dumpcap)" ] ||
            tap dumpcap.pcapng 'File: ' dumpcap -q -B 32 -N 1000000 -C 500000000 -w "$out/dumpcap.pcapng" "${devices[@]}"
    fi
    listening
}

# A ring hands over its last block after a second at most, then tcpdump can be told to stop.
recorded() {
    sleep 1.2
    kill -TERM "${listeners[@]}"
    wait "${listeners[@]}" 2>/dev/null
    {
        grep -H 'dropped by kernel' $lab/*.pcap.log | sed 's|.*/\(.*\)\.pcap\.log:|\1: |'
        sed -n "s|.*dropped on interface '\(.*\)': [0-9]*/\([0-9]*\) .*|dumpcap \1: \2 packets dropped|p" \
            $lab/dumpcap.pcapng.log 2>/dev/null
    } >"$out/losses.txt"
}

# Every counter as it stands, without the comments that tell the time.
counters() {
    save4 | grep -v '^#' >"$out/$1.save"
    save6 | grep -v '^#' >"$out/${1}6.save"
    [ -n "${uses_arp:-}" ] && counters_arp >"$out/$1-arp.save"
    [ -n "${uses_nft:-}" ] && counters_nft >"$out/$1.nft"
    if [ -n "${has_legacy:-}" ]; then
        at r iptables-legacy-save -c | grep -v '^#' >"$out/$1-legacy.save"
        at r ip6tables-legacy-save -c | grep -v '^#' >"$out/${1}6-legacy.save"
    fi
}

# counted NAME TIME: what the kernel has counted, and a moment at which it had. The host sends reports of its own
# whenever it likes: the counters are read again until they are the same before that moment and after it.
counted() {
    local turn now file
    counters "$1"
    for turn in $(seq 20); do
        now=$(date -u +%FT%T.%NZ)
        for file in "$out/$1"{.save,6.save,-arp.save,.nft,-legacy.save,6-legacy.save}; do
            [ -e "$file" ] && mv "$file" "$file.before"
        done
        counters "$1"
        for file in "$out/$1"{.save,6.save,-arp.save,.nft,-legacy.save,6-legacy.save}; do
            [ -e "$file" ] && ! cmp -s "$file" "$file.before" && continue 2
        done
        break
    done
    rm -f "$out/$1"*.before
    echo "$now" >"$out/$2"
}

# What is played after the first part, where there is a second one: `change` alters rules, and counters and the folder are
# read again while all rests.
second_part() {
    if declare -F change >/dev/null; then counted mid mid.txt; change; fi
    host_folder late
    listen late.pcap -i any
    listening
    counted late late.txt
    again >>"$out/traffic.log" 2>&1
    sleep "${quiet:-0.3}"
}

play() {
    setup
    sleep "${settle:-0.2}"
    if declare -F before_rules >/dev/null; then before_rules; fi
    [ -n "${early_rules:-}" ] && { rules; before; }
    recording
    if [ -n "${early_rules:-}" ]; then zero; else rules; fi
    host_folder host
    counted from from.txt
    traffic >"$out/traffic.log" 2>&1
    sleep "${quiet:-0.3}"
    if declare -F again >/dev/null; then second_part; fi
    counted expected to.txt
    recorded
    if declare -F proof >/dev/null; then proof >"$out/proof.txt" 2>&1; fi
    cp $lab/*.err "$out/" 2>/dev/null
    find "$out" -maxdepth 1 -type f -empty -delete
}
