# Host a, host b, and between them a wire of tamis in w and the kernel's router r, in series: read after stage.sh.
#
# $tamis is the binary, $out has rules.save, which both load; they are of the family $family (ip, ip6), by which the hosts
# talk. $order is `before` (a - w - r - b) or `after` (a - r - w - b).
# $left and $right are what the rules call the interfaces towards a and b; $left_host, $left_gate, $right_host and
# $right_gate are the addresses of a and of r on its side, and those of b. $size is how much is sent. The wire's ports are
# of $kind: packet sockets, AF_XDP sockets, or devices of DPDK over packet sockets.

# The kernel's tools of the family.
tables=iptables
[ "$family" = ip6 ] && tables=ip6tables

setup() {
    ns a w r b
    [ "$family" = ip6 ] && quiet_hosts
    if [ "$order" = before ]; then
        wire a eth0 w in0
        wire w out0 r "$left"
        wire r "$right" b eth0
    else
        wire a eth0 r "$left"
        wire r "$right" w in0
        wire w out0 b eth0
    fi
    plain a eth0; plain w in0; plain w out0; plain r "$left"; plain r "$right"; plain b eth0
    local length=24
    [ "$family" = ip6 ] && length=64
    addr a eth0 "$left_host/$length"
    addr r "$left" "$left_gate/$length"
    addr b eth0 "$right_host/$length"
    addr r "$right" "$right_gate/$length"
    ip -n a route add default via "$left_gate"
    ip -n b route add default via "$right_gate"
    forwarding r
    [ "$family" = ip6 ] && known_neighbours
    # No redirects, and every refusal is answered.
    for name in a r b; do
        at $name sysctl -qw net.ipv6.icmp.ratelimit=0 net.ipv4.icmp_ratelimit=0 \
            net.ipv4.icmp_msgs_per_sec=1000000 net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.all.rp_filter=0 \
            net.ipv4.tcp_syn_retries=1 net.ipv4.tcp_synack_retries=0 net.ipv4.tcp_orphan_retries=1
    done
}

# What IPv6 says of itself crosses a wire and ends at a router, which takes it for its own: neighbour discovery and
# reports of groups. tamis's FORWARD would see what r's never does, so nothing of it is sent: neighbours are given, groups
# are reported at once, before anything is counted, and w, whose interfaces are no host's, has no IPv6 at all.
quiet_hosts() {
    local name
    for name in a r b; do
        at $name sysctl -qw net.ipv6.conf.default.mldv2_unsolicited_report_interval=1 \
            net.ipv6.conf.default.mldv1_unsolicited_report_interval=1
    done
    at w sysctl -qw net.ipv6.conf.default.disable_ipv6=1
}

known_neighbours() {
    neighbour a eth0 "$left_gate" r "$left"
    neighbour r "$left" "$left_host" a eth0
    neighbour b eth0 "$right_gate" r "$right"
    neighbour r "$right" "$right_host" b eth0
}

# neighbour NS DEV ADDRESS NS DEV: the address is the other's, and nobody has to ask.
neighbour() {
    local mac
    mac=$(at "$4" cat "/sys/class/net/$5/address")
    ip -n "$1" neigh replace "$3" lladdr "$mac" dev "$2" nud permanent
}

# Without offloads, so that each packet is one frame.
plain() { at "$1" ethtool -K "$2" rx off tx off sg off tso off gso off gro off >/dev/null; }

# Programs that serve in a namespace.
serve() {
    web "$1" 80 443
    names "$1"
    at "$1" iperf3 -s -D >/dev/null
    at "$1" /usr/sbin/sshd -f /dev/null -h $lab/host -o PidFile=none -o UsePAM=no -o StrictModes=no \
        -o AuthorizedKeysFile=$lab/user.pub
    at "$1" vsftpd $lab/vsftpd.conf >"$lab/vsftpd-$1.log" 2>&1 &
}

keys() {
    ssh-keygen -q -N '' -t ed25519 -f $lab/host
    ssh-keygen -q -N '' -t ed25519 -f $lab/user
    mkdir -p $lab/ftp $lab/empty
    head -c "$size" /dev/zero >$lab/ftp/file
    chmod -R a+rX $lab/ftp; chmod a-w $lab/ftp
    local listen=listen
    [ "$family" = ip6 ] && listen=listen_ipv6
    printf '%s\n' $listen=YES background=NO anonymous_enable=YES anon_root=$lab/ftp secure_chroot_dir=$lab/empty \
        run_as_launching_user=NO ftp_username=daemon nopriv_user=nobody connect_from_port_20=YES xferlog_enable=NO \
        seccomp_sandbox=NO isolate=NO isolate_network=NO no_anon_password=YES >$lab/vsftpd.conf
}

# Both load the rules. What r forwards is marked by where it came in, so that what it drops can be counted for each way;
# in mangle, which the rules leave alone.
rules() {
    at r ${tables}-legacy-restore <"$out/rules.save" || exit 5
    at r ${tables}-legacy-restore <<R
*mangle
-A FORWARD -i $left -j MARK --set-mark 0x100
-A FORWARD -i $right -j MARK --set-mark 0x200
-A POSTROUTING -m mark --mark 0x100
-A POSTROUTING -m mark --mark 0x200
COMMIT
R
    local near=in0 far=out0
    [ "$kind" = dpdk ] && near=net_af_packet0 far=net_af_packet1
    cat >"$out/live.toml" <<T
[[port]]
name = "$left"
kind = "$kind"
device = "$near"
[[port]]
name = "$right"
kind = "$kind"
device = "$far"
[[wire]]
ports = ["$left", "$right"]
[rules]
$family = "rules.save"
[control]
socket = "$lab/ctl"
T
    [ "$kind" = dpdk ] && cat >>"$out/live.toml" <<T
[dpdk]
eal = ["--no-pci", "--no-huge", "-m", "256", "--vdev=net_af_packet0,iface=in0,framecnt=8192", "--vdev=net_af_packet1,iface=out0,framecnt=8192"]
T
    at w "$tamis" run "$out/live.toml" 2>"$out/tamis.log" >"$out/tamis.out" &
    runs=$!
    local turn
    for turn in $(seq 200); do
        grep -q '^ready' "$out/tamis.log" && return
        sleep 0.02
    done
    cat "$out/tamis.log" >&2
    exit 6
}

reach() { "$tamis" ctl --socket $lab/ctl "$@"; }

# Nothing of a phase is sent again in the next one: waits until every connection is over.
quiet() {
    local turn
    for turn in $(seq 60); do
        [ -z "$(for host in a b; do at $host ss -tnH exclude listening exclude time-wait; done)" ] && return
        sleep 0.2
    done
    echo "connections do not end" >&2
}

# What both have counted, once nothing moves any more.
counted() {
    local turn before=
    quiet
    for turn in $(seq 40); do
        at r ${tables}-legacy-save -c | grep -v '^#' >"$out/kernel-$1.save"
        reach counters --save | grep -v '^#' >"$out/tamis-$1.save"
        reach --json status >"$out/status-$1.json"
        [ "$before" = "$(cat "$out/kernel-$1.save" "$out/tamis-$1.save")" ] && return
        before=$(cat "$out/kernel-$1.save" "$out/tamis-$1.save")
        sleep 0.3
    done
    echo "the counters do not come to rest" >&2
}

# Whether fragments get to the wire as they are: DPDK's net_af_packet has the kernel join them (a fanout with DEFRAG), and
# cuts what it joins off where its buffer ends.
fragments() { [ "$kind" != dpdk ]; }

# What people do: talk FROM TO.
talk() {
    local from=$1 to=$2 url=$2
    [ "$family" = ip6 ] && url="[$2]"
    echoes $from $to 5
    fragments && echoes $from $to 3 -s 4000
    get $from http://$url/small http://$url/small
    get $from http://$url/big
    get $from http://$url:443/small
    look_up $from $to
    look_up $from $to AAAA
    at $from ssh -q -i $lab/user -o BatchMode=yes -o ConnectTimeout=1 -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile=/dev/null root@$to "head -c $size /dev/zero" | wc -c
    at $from timeout 8 iperf3 --connect-timeout 900 -c $to -n $size
    at $from timeout 8 iperf3 --connect-timeout 900 -c $to -n $size -R -P 2
    at $from timeout 8 iperf3 --connect-timeout 900 -c $to -u -b 20M -n $((size / 5)) -l 1200
    get $from ftp://$url/file
    [ "$family" = ip ] && get $from --disable-epsv ftp://$url/file
    get $from --disable-eprt --ftp-port - ftp://$url/file
}

# Datagrams with options from hop to hop, for the destination, and both; then longer ones, in fragments.
optional() {
    at "$1" $python - "$2" "$(fragments && echo 3000)" <<'P'
import socket, sys

HOP_BY_HOP, DESTINATION = 54, 59    # IPV6_HOPOPTS, IPV6_DSTOPTS (linux/in6.h)
PADDING = bytes([0, 0, 1, 4, 0, 0, 0, 0])
for size in [32] + [int(size) for size in sys.argv[2:] if size]:
    for options in [HOP_BY_HOP], [DESTINATION], [HOP_BY_HOP, DESTINATION]:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
            for option in options:
                sender.setsockopt(socket.IPPROTO_IPV6, option, PADDING)
            sender.sendto(bytes(size), (sys.argv[1], 4166))
P
}

# nmap, which asks for no neighbours by itself: scan FROM ARGUMENTS.
scan() {
    local from=$1; shift
    [ "$family" = ip6 ] && set -- -6 --send-ip "$@"
    at $from nmap -n -Pn --max-retries 0 "$@"
}

# What is the same each time, down to the number of packets: probe FROM TO.
probe() {
    local from=$1 to=$2 flags
    at $from ping -q -c 3 -i 0.05 -W 0.5 $to
    fragments && at $from ping -q -c 2 -i 0.05 -W 0.5 -s 3000 $to
    for flags in -sS -sA -sX -sN -sF; do
        scan $from $flags -p 19-30,79-82,443,5201 $to
    done
    scan $from -sS --badsum -p 80-81 $to
    scan $from -sU -p 67-69,137,445,4166 $to
    scan $from -sO -p 2,47,50,132 $to
    [ "$family" = ip6 ] && optional $from $to
}

series() {
    setup
    keys
    serve a
    serve b
    rules
    for host in a b; do
        for port in 80 22 21 5201; do listens $host $port; done
        listens $host 53 udp
    done
    counted 0
    talk a "$right_host"; counted 1
    talk b "$left_host"; counted 2
    probe a "$right_host"; counted 3
    probe b "$left_host"; counted 4
    reach stop
    wait $runs
}
