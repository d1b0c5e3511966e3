# Host a, host b, and between them a wire of tamis in w and the kernel's router r, in series: read after stage.sh.
#
# $tamis is the binary, $out has rules.v4, which both load. $order is `before` (a - w - r - b) or `after` (a - r - w - b).
# $left and $right are what the rules call the interfaces towards a and b; $left_host, $left_gate, $right_host and
# $right_gate are the addresses of a and of r on its side, and those of b. $size is how much is sent. The wire's ports are
# of $kind: packet sockets, AF_XDP sockets, or devices of DPDK over packet sockets.

setup() {
    ns a w r b
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
    addr a eth0 "$left_host/24"
    addr r "$left" "$left_gate/24"
    addr b eth0 "$right_host/24"
    addr r "$right" "$right_gate/24"
    ip -n a route add default via "$left_gate"
    ip -n b route add default via "$right_gate"
    forwarding r
    # No redirects, and every refusal is answered.
    for name in a r b; do
        at $name sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv4.icmp_msgs_per_sec=1000000 \
            net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.all.rp_filter=0 \
            net.ipv4.tcp_syn_retries=1 net.ipv4.tcp_synack_retries=0 net.ipv4.tcp_orphan_retries=1
    done
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
    printf '%s\n' listen=YES background=NO anonymous_enable=YES anon_root=$lab/ftp secure_chroot_dir=$lab/empty \
        run_as_launching_user=NO ftp_username=daemon nopriv_user=nobody connect_from_port_20=YES xferlog_enable=NO \
        seccomp_sandbox=NO isolate=NO isolate_network=NO no_anon_password=YES >$lab/vsftpd.conf
}

# Both load the rules. What r forwards is marked by where it came in, so that what it drops can be counted for each way;
# in mangle, which the rules leave alone.
rules() {
    at r iptables-legacy-restore <"$out/rules.v4" || exit 5
    at r iptables-legacy-restore <<R
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
ip = "rules.v4"
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
        at r iptables-legacy-save -c | grep -v '^#' >"$out/kernel-$1.save"
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
    local from=$1 to=$2
    echoes $from $to 5
    fragments && echoes $from $to 3 -s 4000
    get $from http://$to/small http://$to/small
    get $from http://$to/big
    get $from http://$to:443/small
    look_up $from $to
    look_up $from $to AAAA
    at $from ssh -q -i $lab/user -o BatchMode=yes -o ConnectTimeout=1 -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile=/dev/null root@$to "head -c $size /dev/zero" | wc -c
    at $from timeout 8 iperf3 --connect-timeout 900 -c $to -n $size
    at $from timeout 8 iperf3 --connect-timeout 900 -c $to -n $size -R -P 2
    at $from timeout 8 iperf3 --connect-timeout 900 -c $to -u -b 20M -n $((size / 5)) -l 1200
    get $from ftp://$to/file
    get $from --disable-epsv ftp://$to/file
    get $from --disable-eprt --ftp-port - ftp://$to/file
}

# What is the same each time, down to the number of packets: probe FROM TO.
probe() {
    local from=$1 to=$2 scan
    at $from ping -q -c 3 -i 0.05 -W 0.5 $to
    fragments && at $from ping -q -c 2 -i 0.05 -W 0.5 -s 3000 $to
    for scan in -sS -sA -sX -sN -sF; do
        at $from nmap -n -Pn $scan --max-retries 0 -p 19-30,79-82,443,5201 $to
    done
    at $from nmap -n -Pn -sS --badsum --max-retries 0 -p 80-81 $to
    at $from nmap -n -Pn -sU --max-retries 0 -p 67-69,137,445,4166 $to
    at $from nmap -n -Pn -sO --max-retries 0 -p 2,47,50,132 $to
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
