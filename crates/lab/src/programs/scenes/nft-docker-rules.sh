
rules() {
    nft_rules <<'R'
table ip docker-bridges {
	map filter-forward-in-jumps {
		type ifname : verdict
		elements = { "docker0" : jump filter-forward-in__docker0, "app0" : jump filter-forward-in__app0 }
	}
	map filter-forward-out-jumps {
		type ifname : verdict
		elements = { "docker0" : jump filter-forward-out__docker0, "app0" : jump filter-forward-out__app0 }
	}
	map nat-postrouting-in-jumps {
		type ifname : verdict
		elements = { "docker0" : jump nat-postrouting-in__docker0, "app0" : jump nat-postrouting-in__app0 }
	}
	map nat-postrouting-out-jumps {
		type ifname : verdict
		elements = { "docker0" : jump nat-postrouting-out__docker0, "app0" : jump nat-postrouting-out__app0 }
	}
	chain filter-FORWARD {
		type filter hook forward priority filter; policy accept;
		counter oifname vmap @filter-forward-in-jumps
		counter iifname vmap @filter-forward-out-jumps
		counter
	}
	chain nat-OUTPUT {
		type nat hook output priority -100; policy accept;
		ip daddr != 127.0.0.0/8 fib daddr type local counter jump nat-prerouting-and-output
	}
	chain nat-POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
		counter iifname vmap @nat-postrouting-out-jumps
		counter oifname vmap @nat-postrouting-in-jumps
		counter
	}
	chain nat-PREROUTING {
		type nat hook prerouting priority dstnat; policy accept;
		fib daddr type local counter jump nat-prerouting-and-output
	}
	chain nat-prerouting-and-output {
		iifname != "docker0" tcp dport 8080 counter dnat to 172.17.0.2:80 comment "DNAT"
		iifname != "docker0" tcp dport 8081 counter dnat to 172.17.0.3:80 comment "DNAT"
		iifname != "docker0" tcp dport 1001 counter dnat to 172.17.0.2:1001 comment "DNAT"
		iifname != "docker0" udp dport 1001 counter dnat to 172.17.0.2:1001 comment "DNAT"
		iifname != "app0" tcp dport 8082 counter dnat to 172.18.0.2:80 comment "DNAT"
	}
	chain raw-PREROUTING {
		type filter hook prerouting priority raw; policy accept;
		ip daddr 172.17.0.2 iifname != "docker0" counter drop comment "DROP DIRECT ACCESS"
		ip daddr 172.18.0.2 iifname != "app0" counter drop comment "DROP DIRECT ACCESS"
		ip daddr 127.0.0.1 tcp dport 8080 iifname != "lo" counter drop comment "DROP PORT FROM OUTSIDE"
	}
	chain filter-forward-in__docker0 {
		ct state established,related counter accept
		iifname "docker0" counter accept comment "ICC"
		ip daddr 172.17.0.2 tcp dport 80 counter accept
		ip daddr 172.17.0.2 tcp dport 1001 counter accept
		ip daddr 172.17.0.2 udp dport 1001 counter accept
		ip daddr 172.17.0.3 tcp dport 80 counter accept
		counter drop comment "UNPUBLISHED PORT DROP"
	}
	chain filter-forward-out__docker0 {
		ct state established,related counter accept
		counter accept comment "OUTGOING"
	}
	chain nat-postrouting-in__docker0 {
		ip saddr 172.17.0.2 ip daddr 172.17.0.2 tcp dport 80 counter masquerade
	}
	chain nat-postrouting-out__docker0 {
		oifname != "docker0" ip saddr 172.17.0.0/16 counter masquerade comment "MASQUERADE"
	}
	chain filter-forward-in__app0 {
		ct state established,related counter accept
		iifname "app0" counter accept comment "ICC"
		ip daddr 172.18.0.2 tcp dport 80 counter accept
		counter drop comment "UNPUBLISHED PORT DROP"
	}
	chain filter-forward-out__app0 {
		ct state established,related counter accept
		counter accept comment "OUTGOING"
	}
	chain nat-postrouting-in__app0 {
	}
	chain nat-postrouting-out__app0 {
		oifname != "app0" ip saddr 172.18.0.0/16 counter masquerade comment "MASQUERADE"
	}
}
table ip6 docker-bridges {
	chain filter-FORWARD {
		type filter hook forward priority filter; policy accept;
		counter
	}
	chain raw-PREROUTING {
		type filter hook prerouting priority raw; policy accept;
	}
}
R
}
nft_alone
