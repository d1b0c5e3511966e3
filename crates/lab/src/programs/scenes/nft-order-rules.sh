
rules() {
    at r iptables-nft-restore <<'R'
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i wan0 -p tcp -m tcp --dport 20:22 -j DROP
-A INPUT -i lan0
-A FORWARD -p tcp -m tcp --dport 20:24 -j DROP
-A FORWARD -p tcp -m tcp --dport 80
-A FORWARD -p icmp
-A FORWARD -i lan0 -p udp -j ACCEPT
-A FORWARD -p tcp -m tcp --dport 30:34 -j REJECT --reject-with tcp-reset
-A OUTPUT -p icmp
COMMIT
R
    at r iptables-legacy-restore <<'R'
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i wan0 -p tcp -m tcp --dport 22:24 -j REJECT --reject-with tcp-reset
-A INPUT -i lan0
-A FORWARD -p tcp -m tcp --dport 22:26 -j DROP
-A FORWARD -p tcp -m tcp --dport 80
-A FORWARD -p icmp -m icmp --icmp-type 8 -m length --length 4000:5000 -j DROP
-A FORWARD -p tcp -m tcp --dport 32:36 -j REJECT --reject-with icmp-port-unreachable
-A OUTPUT -p icmp
COMMIT
R
    nft_rules <<'R'
table inet guard {
	chain input {
		type filter hook input priority filter; policy accept;
		iifname "wan0" tcp dport 23-26 counter drop
		iifname "lan0" counter
	}
	chain forward {
		type filter hook forward priority filter; policy accept;
		tcp dport 24-28 counter drop
		tcp dport 80 counter accept
		icmp type { echo-request, echo-reply } counter
		tcp dport 34-38 counter reject
		tcp dport 443 counter drop
	}
	chain output {
		type filter hook output priority filter; policy accept;
		meta l4proto icmp counter
	}
}
R
}
save4() { at r iptables-nft-save -c; }
save6() { at r ip6tables-nft-save -c; }
uses_nft=1
nft_tables=("inet guard")
has_legacy=1
folder_too() { printf '%s\n' iptables.save iptables-legacy.save nft.json >"$1/registered.txt"; }
