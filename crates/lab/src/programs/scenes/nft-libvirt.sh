# libvirt's backend of nft: guests on a network that is translated and on one that is isolated, chains that hold
# indices of interfaces (iif, oif), masquerading to ranges of ports by protocol, refusals between networks.
# needs: nginx curl dnsmasq dig ping socat python3 nft
# one: virbr0
settle=1.5

nft_alone

setup() {
    local one
    ns a b d r s
    ip -n r link add virbr0 type bridge
    ip -n r link add virbr1 type bridge
    ip -n r link set virbr0 up
    ip -n r link set virbr1 up
    for one in a:virbr0:192.168.122.10 b:virbr0:192.168.122.11 d:virbr1:192.168.100.10; do
        IFS=: read -r name bridge address <<<"$one"
        wire "$name" eth0 r "vnet$name"
        ip -n r link set "vnet$name" master "$bridge"
        addr "$name" eth0 "$address/24"
        ip -n "$name" route add default via "${address%.*}.1"
    done
    addr r virbr0 192.168.122.1/24 2001:db8:122::1/64
    addr r virbr1 192.168.100.1/24
    addr a eth0 2001:db8:122::10/64
    ip -n a route add default via 2001:db8:122::1
    wire s eth0 r eth0
    addr r eth0 192.0.2.10/24 2001:db8:2::10/64
    addr s eth0 192.0.2.1/24 2001:db8:2::80/64
    ip -n s route add 192.168.0.0/16 via 192.0.2.10
    ip -n s route add 2001:db8:122::/64 via 2001:db8:2::10
    forwarding r
    at r sysctl -qw net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0
    web a 80
    web s 80
    web r 80
    names r
    names s
    echoing s 1001
    listens a 80
    listens s 80
    listens r 80
    listens s 53 udp
    listens r 53 udp
}

rules() {
    nft_rules <<'R'
table ip libvirt_network {
	chain forward {
		type filter hook forward priority filter; policy accept;
		counter jump guest_cross
		counter jump guest_input
		counter jump guest_output
	}
	chain guest_output {
		ip saddr 192.168.122.0/24 iif "virbr0" counter accept
		iif "virbr0" counter reject
		iif "virbr1" counter reject
	}
	chain guest_input {
		oif "virbr0" ip daddr 192.168.122.0/24 ct state established,related counter accept
		oif "virbr0" counter reject
		oif "virbr1" counter reject
	}
	chain guest_cross {
		iif "virbr0" oif "virbr0" counter accept
		iif "virbr1" oif "virbr1" counter accept
	}
	chain guest_nat {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 192.168.122.0/24 ip daddr 224.0.0.0/24 counter return
		ip saddr 192.168.122.0/24 ip daddr 255.255.255.255 counter return
		meta l4proto tcp ip saddr 192.168.122.0/24 ip daddr != 192.168.122.0/24 counter masquerade to :1024-65535
		meta l4proto udp ip saddr 192.168.122.0/24 ip daddr != 192.168.122.0/24 counter masquerade to :1024-65535
		ip saddr 192.168.122.0/24 ip daddr != 192.168.122.0/24 counter masquerade
	}
}
table ip6 libvirt_network {
	chain forward {
		type filter hook forward priority filter; policy accept;
		counter jump guest_cross
		counter jump guest_input
		counter jump guest_output
	}
	chain guest_output {
		ip6 saddr 2001:db8:122::/64 iif "virbr0" counter accept
		iif "virbr0" counter reject
	}
	chain guest_input {
		oif "virbr0" ip6 daddr 2001:db8:122::/64 counter accept
		oif "virbr0" counter reject
	}
	chain guest_cross {
		iif "virbr0" oif "virbr0" counter accept
	}
}
R
}

traffic() {
    get a http://192.0.2.1/small
    get a http://192.0.2.1/big
    get b http://192.0.2.1/small
    get b http://192.168.122.10/small
    get b --connect-timeout 0.5 http://192.168.100.10/small
    get d --connect-timeout 0.5 http://192.0.2.1/small
    get d http://192.168.100.1/small
    get d --connect-timeout 0.5 http://192.168.122.10/small
    get s --connect-timeout 0.5 http://192.168.122.10/small
    get r http://192.168.122.10/small
    get a 'http://[2001:db8:2::80]/small'
    get s 'http://[2001:db8:122::10]/big'
    look_up a 192.168.122.1
    look_up b 192.0.2.1
    look_up d 192.168.100.1
    echoes a 192.0.2.1 3
    echoes b 192.168.122.10 2
    echoes a 192.168.122.1 2
    echoes a 2001:db8:2::80 2
    echoes s 192.168.122.10 2
    echoes d 192.0.2.1 2
    echoes a 192.0.2.1 2 -s 4000
    echo hello | at a socat -T 0.2 - UDP:192.0.2.1:1001
    echo hello | at b socat -T 0.2 - UDP:192.168.122.255:1001,broadcast
    knock a 192.0.2.1 81 1001
    knock b 192.168.122.1 81
}
