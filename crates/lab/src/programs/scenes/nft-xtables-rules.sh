
nft_own() {
    nft_rules <<'R'
table ip guard {
	chain forward {
		type filter hook forward priority filter + 5; policy accept;
		ct state new counter
		tcp dport 443 counter drop
	}
	chain post {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "wan0" counter masquerade
	}
}
table ip6 guard6 {
	chain forward {
		type filter hook forward priority filter; policy drop;
		counter
	}
}
R
}
eval "router_$(declare -f rules)"
rules() { router_rules; nft_own; }
uses_nft=1
nft_tables=("ip guard" "ip6 guard6")
