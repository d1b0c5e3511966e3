# A gateway that has nft alone: a table inet that filters both families and one of each that translates; sets of addresses
# with intervals, of ports, of protocols with ports; a map of forwarded ports, verdict maps of states, devices and
# ports; fib, limits, marks of connections, an accept that a later chain overrules.
# needs: nginx curl dnsmasq dig ping socat iperf3 python3 nft
# one: wan0
# inbound: ct count is not evaluated, and no capture of what came shows that its rule refused nothing.
settle=1.5

nft_alone

setup() {
    ns c d r s
    wire c eth0 r lan0
    wire d eth0 r dmz0
    wire s eth0 r wan0
    addr c eth0 10.1.0.10/24 2001:db8:1::10/64
    addr d eth0 10.2.0.10/24 2001:db8:3::10/64
    addr r lan0 10.1.0.1/24 2001:db8:1::1/64
    addr r dmz0 10.2.0.1/24 2001:db8:3::1/64
    addr r wan0 192.0.2.1/24 2001:db8:2::1/64
    addr s eth0 192.0.2.80/24 192.0.2.66/24 10.9.0.9/32 2001:db8:2::80/64
    ip -n c route add default via 10.1.0.1
    ip -n c route add default via 2001:db8:1::1
    ip -n d route add default via 10.2.0.1
    ip -n d route add default via 2001:db8:3::1
    ip -n s route add 2001:db8::/32 via 2001:db8:2::1
    ip -n s route add 10.1.0.0/16 via 192.0.2.1
    forwarding r
    web s 80 443
    web d 80
    web r 81
    names s
    names r
    echoing d 1001
    echoing s 1001
    at s iperf3 -s -D
    listens s 80
    listens s 5201
    listens d 80
    listens r 81
    listens s 53 udp
    listens r 53 udp
}

rules() {
    nft_rules <<'R'
table inet gate {
	set bogons {
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/8, 172.16.0.0/12, 198.18.0.5-198.18.0.9 }
	}
	set refused {
		type ipv4_addr
		elements = { 192.0.2.66 }
	}
	set refused6 {
		type ipv6_addr
		flags interval
		elements = { 2001:db8:bad::/48 }
	}
	set services {
		type inet_proto . inet_service
		elements = { udp . 53, tcp . 53, tcp . 81 }
	}
	map by_port {
		type inet_service : verdict
		flags interval
		elements = { 80 : jump web, 443 : jump web, 1000-1999 : accept, 5201 : accept }
	}
	chain early {
		type filter hook prerouting priority raw; policy accept;
		iifname "wan0" ip saddr @bogons counter drop
		iifname "wan0" fib saddr . iif oif missing counter drop
		ip6 saddr @refused6 counter drop
		tcp flags & (fin | syn) == fin | syn counter drop
		fib daddr type { broadcast, anycast } counter
	}
	chain classify {
		type filter hook prerouting priority mangle; policy accept;
		ct state new iifname "lan0" counter ct mark set 0x10
		ct state new iifname "dmz0" counter ct mark set 0x20
		counter meta mark set ct mark
		meta mark 0x10-0x1f counter
	}
	chain known {
		ct direction original counter accept
		counter accept
	}
	chain bad {
		counter drop
	}
	chain from_lan {
		meta l4proto . th dport @services counter accept
		icmp type echo-request counter accept
		icmpv6 type { echo-request, nd-neighbor-solicit, nd-neighbor-advert } counter accept
		counter reject
	}
	chain from_wan {
		icmp type echo-request limit rate 5/second burst 5 packets counter accept
		icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert } counter accept
		icmpv6 type echo-request limit rate 10/minute burst 2 packets counter accept
		meta l4proto tcp counter reject with tcp reset
		counter drop
	}
	chain input {
		type filter hook input priority filter; policy drop;
		counter ct state vmap { invalid : jump bad, established : jump known, related : jump known }
		counter iifname vmap { "lo" : accept, "lan0" : jump from_lan, "dmz0" : jump from_lan, "wan0" : jump from_wan }
		counter
	}
	chain web {
		ct count over 200 counter reject
		tcp flags syn / fin,syn,rst,ack counter
		counter accept
	}
	chain out {
		ip daddr @refused counter reject with icmp admin-prohibited
		counter tcp dport vmap @by_port
		meta l4proto { icmp, ipv6-icmp } counter accept
		udp dport 53 counter accept
		udp dport 1001 counter accept
		meta nfproto ipv6 counter reject with icmpv6 no-route
		counter reject with icmpx host-unreachable
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
		counter ct state vmap { invalid : jump bad, established : jump known, related : jump known }
		ct status dnat counter accept
		iifname "lan0" oifname { "wan0", "dmz0" } counter jump out
		iifname "dmz0" oifname "wan0" counter goto out
		oifname "dmz0" ip6 daddr 2001:db8:3::10 tcp dport 80 counter accept
		counter reject with icmpx admin-prohibited
	}
	chain forward_late {
		type filter hook forward priority filter + 10; policy accept;
		ip saddr 10.2.0.0/16 ip daddr 192.0.2.0/24 tcp dport 443 counter drop
		meta mark 0x10 counter
		meta length > 1000 counter
		ip ttl < 64 counter
	}
	chain output {
		type filter hook output priority filter; policy accept;
		counter
		oifname "wan0" ip daddr @bogons counter reject
		ct state invalid counter drop
		meta l4proto icmp icmp type { destination-unreachable, time-exceeded } counter
	}
	chain clamp {
		type filter hook postrouting priority mangle; policy accept;
		oifname "wan0" tcp flags syn / syn,rst counter tcp option maxseg size set rt mtu
		ip dscp cs1 counter
		counter
	}
}
table ip gate_nat {
	map forwards {
		type inet_service : ipv4_addr . inet_service
		elements = { 8080 : 10.2.0.10 . 80, 1001 : 10.2.0.10 . 1001 }
	}
	chain prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		iifname "wan0" meta l4proto { tcp, udp } counter dnat ip to th dport map @forwards
		iifname "lan0" udp dport 53 ip daddr != 10.1.0.1 ip daddr != 192.0.2.80 counter redirect
	}
	map services {
		type inet_service : ipv4_addr . inet_service
		elements = { 7080 : 10.2.0.10 . 80, 7081 : 192.0.2.80 . 80 }
	}
	chain output {
		type nat hook output priority -100; policy accept;
		ip daddr 192.0.2.99 meta l4proto { tcp, udp } counter dnat ip to th dport map @services
		counter
	}
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "wan0" ip saddr 10.2.0.0/16 counter snat to 192.0.2.1
		oifname "wan0" ip saddr 10.1.0.0/16 counter masquerade
		counter
	}
}
table ip6 gate_nat {
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "wan0" ip6 saddr 2001:db8:1::/64 tcp dport 80 counter masquerade
	}
}
R
}

traffic() {
    local port
    get c http://192.0.2.80/small http://192.0.2.80/small
    get c http://192.0.2.80/big
    get d http://192.0.2.80/small
    get d --connect-timeout 0.5 http://192.0.2.80:443/small
    get c http://10.2.0.10/small
    get c http://192.0.2.66/small
    get s http://192.0.2.1:8080/small
    get s http://192.0.2.1:8080/big
    get s http://192.0.2.1:82/
    get s --connect-timeout 0.5 --interface 10.9.0.9 http://192.0.2.1:8080/small
    get r http://192.0.2.80/small
    get r http://10.9.0.9/small
    get r http://192.0.2.99:7080/small
    get r http://192.0.2.99:7081/small
    get r --connect-timeout 0.2 http://192.0.2.99:7082/small
    get c 'http://[2001:db8:2::80]/small'
    get c 'http://[2001:db8:2::80]/big'
    get c 'http://[2001:db8:2::80]:444/small'
    get s 'http://[2001:db8:3::10]/small'
    get s 'http://[2001:db8:3::10]:81/small'
    get s 'http://[2001:db8:2::1]:81/small'
    get c 'http://[2001:db8:1::1]:81/small'
    get c http://10.1.0.1:81/small
    get c http://10.1.0.1:82/small
    look_up c 192.0.2.80
    look_up c 198.51.100.5
    look_up c 10.1.0.1
    look_up c 2001:db8:1::1
    look_up d 192.0.2.80
    look_up s 192.0.2.1
    echoes c 192.0.2.80 3
    echoes c 2001:db8:2::80 3
    echoes c 192.0.2.80 1 -t 1
    echoes c 10.1.0.1 2
    echoes d 2001:db8:3::1 2
    echoes s 192.0.2.1 8
    echoes s 2001:db8:2::1 4
    echoes s 2001:db8:1::10 1
    echoes c 192.0.2.80 2 -Q 0x20
    at c iperf3 -c 192.0.2.80 -n "${big:-3000000}" >/dev/null
    knock c 192.0.2.80 22 25 1001 1002
    knock s 192.0.2.1 22 8080 8081
    echo hello | at s socat -T 0.2 - UDP:192.0.2.1:1001
    flow c tcp 192.0.2.80 1001 2
    flow s tcp 192.0.2.1 1001 2
    flow d udp 192.0.2.80 1001 2
    flowing
}

again() {
    go
    get c http://192.0.2.80/big
    get s http://192.0.2.1:8080/small
    get c 'http://[2001:db8:2::80]/small'
    echoes c 192.0.2.80 2
    echoes c 2001:db8:2::80 2
    knock c 192.0.2.80 22
    sleep 0.3
}
