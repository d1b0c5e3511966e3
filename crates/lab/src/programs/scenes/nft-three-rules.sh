
rules() {
    at r iptables-legacy-restore <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -i lan0
-A PREROUTING -i wan0 -p tcp -m tcp --dport 25 -j DROP
-A OUTPUT -p icmp -m icmp --icmp-type 3
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i lan0 -p tcp -m tcp --dport 80 -j MARK --set-xmark 0x1/0xffffffff
-A FORWARD -i lan0 -o wan0 -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
-A FORWARD -m mark --mark 0x2
-A POSTROUTING -o lan0
-A POSTROUTING -o wan0 -m mark --mark 0x1
COMMIT
R
    nft_rules <<'R'
table inet guard {
	set open {
		type inet_service
		elements = { 22, 53, 80, 443 }
	}
	chain pre {
		type filter hook prerouting priority dstnat - 5; policy accept;
		meta mark 0x1 counter
		iifname "wan0" tcp dport { 135, 139, 445 } counter drop
	}
	chain input {
		type filter hook input priority filter - 10; policy accept;
		ct state invalid counter drop
		iifname "wan0" tcp dport != @open counter drop
		counter
	}
	chain forward {
		type filter hook forward priority filter - 10; policy accept;
		meta mark 0x1 counter meta mark set 0x2
		ct state established counter accept
		udp dport 33434-33534 counter reject
		counter
	}
	chain late {
		type filter hook forward priority filter + 10; policy accept;
		icmp type echo-request counter
		tcp dport 443 counter drop
		counter
	}
	chain output {
		type filter hook output priority filter + 10; policy accept;
		icmp type destination-unreachable counter
		counter
	}
}
R
    at r iptables-nft-restore <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i wan0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.1.0.10:80
-A POSTROUTING -s 10.1.0.0/24 -o wan0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -p tcp -m tcp --dport 22 -j ACCEPT
-A INPUT -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A INPUT -i wan0 -p tcp -j REJECT --reject-with tcp-reset
-A INPUT -i wan0 -j REJECT --reject-with icmp-port-unreachable
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m mark --mark 0x2 -j ACCEPT
-A FORWARD -i lan0 -o wan0 -p tcp -m multiport --dports 80,443 -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -i lan0 -p udp -m udp --dport 53 -j ACCEPT
-A FORWARD -i lan0 -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A FORWARD -i lan0 -p tcp -j REJECT --reject-with tcp-reset
-A FORWARD -i lan0 -j REJECT --reject-with icmp-admin-prohibited
-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT
-A OUTPUT -m conntrack --ctstate INVALID -j DROP
-A OUTPUT -m conntrack --ctstate RELATED
COMMIT
R
}
save4() { at r iptables-nft-save -c; }
save6() { at r ip6tables-nft-save -c; }
uses_nft=1
nft_tables=("inet guard")
has_legacy=1
