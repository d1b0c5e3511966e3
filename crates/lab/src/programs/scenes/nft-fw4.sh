# OpenWrt's fw4: one table inet, a bridge to the LAN, zones by device with the chains accept_to and reject_from, limits of
# SYNs, MSS by the route, invalid packets not to leave untranslated, a forwarded port with reflection, both families.
# needs: nginx curl dnsmasq dig ping traceroute nmap python3 socat nft
# one: wan
# unseen: nft inet fw4 mangle_output 1: nat drops the redirects that a hairpin gives rise to, before they reach a device.
settle=1.5

nft_alone

setup() {
    local one
    ns c d r s
    ip -n r link add br-lan type bridge
    ip -n r link set br-lan up
    wire c eth0 r lan1
    wire d eth0 r lan2
    ip -n r link set lan1 master br-lan
    ip -n r link set lan2 master br-lan
    at r sysctl -qw net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0
    wire s eth0 r wan
    addr c eth0 192.168.1.10/24 2001:db8:1::10/64
    addr d eth0 192.168.1.11/24 2001:db8:1::11/64
    addr r br-lan 192.168.1.1/24 2001:db8:1::1/64
    addr r wan 203.0.113.2/24 2001:db8:2::1/64
    addr s eth0 203.0.113.80/24 2001:db8:2::80/64
    for one in c d; do
        ip -n $one route add default via 192.168.1.1
        ip -n $one route add default via 2001:db8:1::1
    done
    ip -n s route add 2001:db8:1::/64 via 2001:db8:2::1
    ip -n s route add 192.168.1.0/24 via 203.0.113.2
    forwarding r
    web s 80
    web c 80
    web r 80
    names s
    names r
    echoing s 1001
    listens s 80
    listens c 80
    listens r 80
    listens s 53 udp
    listens r 53 udp
}

rules() {
    nft_rules <<'R'
table inet fw4 {
	chain input {
		type filter hook input priority filter; policy drop;
		iif "lo" counter accept comment "!fw4: Accept traffic from loopback"
		counter ct state vmap { established : accept, related : accept } comment "!fw4: Handle inbound flows"
		tcp flags syn / fin,syn,rst,ack counter jump syn_flood comment "!fw4: Rate limit TCP syn packets"
		iifname "br-lan" counter jump input_lan comment "!fw4: Handle lan IPv4/IPv6 input traffic"
		iifname "wan" counter jump input_wan comment "!fw4: Handle wan IPv4/IPv6 input traffic"
		counter jump handle_reject
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
		counter ct state vmap { established : accept, related : accept } comment "!fw4: Handle forwarded flows"
		iifname "br-lan" counter jump forward_lan comment "!fw4: Handle lan IPv4/IPv6 forward traffic"
		iifname "wan" counter jump forward_wan comment "!fw4: Handle wan IPv4/IPv6 forward traffic"
		counter jump handle_reject
	}
	chain output {
		type filter hook output priority filter; policy accept;
		oif "lo" counter accept comment "!fw4: Accept traffic towards loopback"
		counter ct state vmap { established : accept, related : accept } comment "!fw4: Handle outbound flows"
		oifname "br-lan" counter jump output_lan comment "!fw4: Handle lan IPv4/IPv6 output traffic"
		oifname "wan" counter jump output_wan comment "!fw4: Handle wan IPv4/IPv6 output traffic"
	}
	chain handle_reject {
		meta l4proto tcp counter reject with tcp reset comment "!fw4: Reject TCP traffic"
		counter reject comment "!fw4: Reject any other traffic"
	}
	chain syn_flood {
		limit rate 25/second burst 20 packets counter return comment "!fw4: Accept SYN packets below rate-limit"
		counter drop comment "!fw4: Drop excess packets"
	}
	chain input_lan {
		counter jump accept_from_lan
	}
	chain output_lan {
		counter jump accept_to_lan
	}
	chain forward_lan {
		counter jump accept_to_wan comment "!fw4: Accept lan to wan forwarding"
		counter jump accept_to_lan
	}
	chain accept_from_lan {
		iifname "br-lan" counter accept comment "!fw4: accept lan IPv4/IPv6 traffic"
	}
	chain accept_to_lan {
		meta nfproto ipv4 oifname "br-lan" ct state invalid counter drop comment "!fw4: Prevent NAT leakage"
		oifname "br-lan" counter accept comment "!fw4: accept lan IPv4/IPv6 traffic"
	}
	chain input_wan {
		meta nfproto ipv4 udp dport 68 counter accept comment "!fw4: Allow-DHCP-Renew"
		meta nfproto ipv4 icmp type echo-request counter accept comment "!fw4: Allow-Ping"
		meta nfproto ipv4 meta l4proto igmp counter accept comment "!fw4: Allow-IGMP"
		ip6 saddr fc00::/6 ip6 daddr fc00::/6 udp dport 546 counter accept comment "!fw4: Allow-DHCPv6"
		ip6 saddr fe80::/10 icmpv6 type . icmpv6 code { 130 . 0, 131 . 0, 132 . 0, 143 . 0 } counter accept comment "!fw4: Allow-MLD"
		meta nfproto ipv6 icmpv6 type { 128, 129, 1, 3, 133, 134 } limit rate 1000/second burst 5 packets counter accept comment "!fw4: Allow-ICMPv6-Input"
		meta nfproto ipv6 icmpv6 type . icmpv6 code { 2 . 0, 4 . 0, 4 . 1, 135 . 0, 136 . 0 } limit rate 1000/second burst 5 packets counter accept comment "!fw4: Allow-ICMPv6-Input"
		ct status dnat counter accept comment "!fw4: Accept port redirections"
		counter jump reject_from_wan
	}
	chain output_wan {
		counter jump accept_to_wan
	}
	chain forward_wan {
		meta nfproto ipv6 icmpv6 type { 128, 129, 1, 3 } limit rate 1000/second burst 5 packets counter accept comment "!fw4: Allow-ICMPv6-Forward"
		meta nfproto ipv6 icmpv6 type . icmpv6 code { 2 . 0, 4 . 0, 4 . 1 } limit rate 1000/second burst 5 packets counter accept comment "!fw4: Allow-ICMPv6-Forward"
		meta l4proto esp counter jump accept_to_lan comment "!fw4: Allow-IPSec-ESP"
		udp dport 500 counter jump accept_to_lan comment "!fw4: Allow-ISAKMP"
		ct status dnat counter accept comment "!fw4: Accept port forwards"
		counter jump reject_to_wan
	}
	chain accept_to_wan {
		meta nfproto ipv4 oifname "wan" ct state invalid counter drop comment "!fw4: Prevent NAT leakage"
		oifname "wan" counter accept comment "!fw4: accept wan IPv4/IPv6 traffic"
	}
	chain reject_from_wan {
		iifname "wan" counter jump handle_reject comment "!fw4: reject wan IPv4/IPv6 traffic"
	}
	chain reject_to_wan {
		oifname "wan" counter jump handle_reject comment "!fw4: reject wan IPv4/IPv6 traffic"
	}
	chain dstnat {
		type nat hook prerouting priority dstnat; policy accept;
		iifname "br-lan" counter jump dstnat_lan comment "!fw4: Handle lan IPv4/IPv6 dstnat traffic"
		iifname "wan" counter jump dstnat_wan comment "!fw4: Handle wan IPv4/IPv6 dstnat traffic"
	}
	chain srcnat {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "br-lan" counter jump srcnat_lan comment "!fw4: Handle lan IPv4/IPv6 srcnat traffic"
		oifname "wan" counter jump srcnat_wan comment "!fw4: Handle wan IPv4/IPv6 srcnat traffic"
	}
	chain dstnat_lan {
		ip saddr 192.168.1.0/24 ip daddr 203.0.113.2 tcp dport 8080 counter dnat ip to 192.168.1.10:80 comment "!fw4: web (reflection)"
	}
	chain srcnat_lan {
		ip saddr 192.168.1.0/24 ip daddr 192.168.1.10 tcp dport 80 counter snat ip to 192.168.1.1 comment "!fw4: web (reflection)"
	}
	chain dstnat_wan {
		meta nfproto ipv4 tcp dport 8080 counter dnat ip to 192.168.1.10:80 comment "!fw4: web"
		meta nfproto ipv4 tcp dport 8081 counter redirect to :80 comment "!fw4: admin"
	}
	chain srcnat_wan {
		meta nfproto ipv4 counter masquerade comment "!fw4: Masquerade IPv4 wan traffic"
	}
	chain raw_prerouting {
		type filter hook prerouting priority raw; policy accept;
		iifname "wan" udp dport 4500 counter notrack
	}
	chain raw_output {
		type filter hook output priority raw; policy accept;
	}
	chain mangle_prerouting {
		type filter hook prerouting priority mangle; policy accept;
	}
	chain mangle_postrouting {
		type filter hook postrouting priority mangle; policy accept;
		oifname "wan" tcp flags syn / fin,syn,rst counter tcp option maxseg size set rt mtu comment "!fw4: Zone wan IPv4/IPv6 egress MTU fixing"
	}
	chain mangle_input {
		type filter hook input priority mangle; policy accept;
	}
	chain mangle_output {
		type route hook output priority mangle; policy accept;
		icmp type redirect counter
		counter
	}
	chain mangle_forward {
		type filter hook forward priority mangle; policy accept;
		iifname "wan" tcp flags syn / fin,syn,rst counter tcp option maxseg size set rt mtu comment "!fw4: Zone wan IPv4/IPv6 ingress MTU fixing"
	}
}
R
}

traffic() {
    get c http://203.0.113.80/small http://203.0.113.80/small
    get d http://203.0.113.80/big
    get c 'http://[2001:db8:2::80]/small'
    get d 'http://[2001:db8:2::80]/big'
    get c http://192.168.1.1/small
    get d 'http://[2001:db8:1::1]/small'
    get d http://192.168.1.10/small
    get d http://203.0.113.2:8080/small
    get s http://203.0.113.2:8080/small
    get s http://203.0.113.2:8080/big
    get s http://203.0.113.2:8081/small
    get s http://203.0.113.2/small
    get s 'http://[2001:db8:1::10]/small'
    get s 'http://[2001:db8:2::1]/small'
    get s http://192.168.1.10/small
    get r http://203.0.113.80/small
    look_up c 192.168.1.1
    look_up d 203.0.113.80
    look_up d 2001:db8:1::1
    look_up s 203.0.113.2
    echoes c 203.0.113.80 3
    echoes d 2001:db8:2::80 3
    echoes s 203.0.113.2 4
    echoes s 2001:db8:2::1 4
    echoes s 2001:db8:1::10 3
    echoes c 192.168.1.1 2
    echoes c 203.0.113.80 2 -s 4000
    at c traceroute -n -q 1 -w 0.3 -m 3 203.0.113.80
    at s nmap -n -Pn -sS --max-retries 0 -p 20-60 203.0.113.2
    echo hello | at s socat -T 0.2 - UDP:203.0.113.2:4500
    echo hello | at c socat -T 0.2 - UDP:203.0.113.80:1001
    knock c 203.0.113.80 81 82
}
