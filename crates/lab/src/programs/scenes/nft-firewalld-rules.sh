
rules() {
    nft_rules <<'R'
table inet firewalld {
	chain mangle_PREROUTING {
		type filter hook prerouting priority mangle + 10; policy accept;
		counter jump mangle_PREROUTING_ZONES
	}
	chain mangle_PREROUTING_ZONES {
		iifname "ext0" counter goto mangle_PRE_external
		iifname "int0" counter goto mangle_PRE_internal
		counter goto mangle_PRE_external
	}
	chain mangle_PRE_external {
		counter
	}
	chain mangle_PRE_internal {
		tcp dport 8080 ct state new counter meta mark set 0x5
	}
	chain nat_PREROUTING {
		type nat hook prerouting priority dstnat + 10; policy accept;
		counter jump nat_PREROUTING_ZONES
	}
	chain nat_PREROUTING_ZONES {
		iifname "ext0" counter goto nat_PRE_external
		counter goto nat_PRE_internal
	}
	chain nat_PRE_external {
		meta nfproto ipv4 tcp dport 2080 counter redirect to :80
	}
	chain nat_PRE_internal {
		counter
	}
	chain nat_POSTROUTING {
		type nat hook postrouting priority srcnat + 10; policy accept;
		counter jump nat_POSTROUTING_ZONES
	}
	chain nat_POSTROUTING_ZONES {
		oifname "ext0" counter goto nat_POST_external
		counter goto nat_POST_internal
	}
	chain nat_POST_external {
		meta nfproto ipv4 oifname != "lo" counter masquerade
	}
	chain nat_POST_internal {
		counter
	}
	chain filter_PREROUTING {
		type filter hook prerouting priority filter + 10; policy accept;
		icmpv6 type { nd-router-advert, nd-neighbor-solicit } counter accept
		meta nfproto ipv6 fib saddr . mark . iif oif missing counter drop
		meta nfproto ipv4 fib saddr . mark . iif oif missing counter log prefix "rpfilter_DROP: " drop
	}
	chain filter_INPUT {
		type filter hook input priority filter + 10; policy accept;
		ct state { established, related } counter accept
		ct status dnat counter accept
		iifname "lo" counter accept
		ct state invalid counter drop
		counter jump filter_INPUT_ZONES
		counter reject with icmpx admin-prohibited
	}
	chain filter_FORWARD {
		type filter hook forward priority filter + 10; policy accept;
		ct state { established, related } counter accept
		ct status dnat counter accept
		iifname "lo" counter accept
		ct state invalid counter drop
		ip6 daddr { ::/96, ::ffff:0.0.0.0/96, 2002:a00::/24, 2002:7f00::/24 } counter reject with icmpv6 addr-unreachable
		counter jump filter_FORWARD_POLICIES
		counter reject with icmpx admin-prohibited
	}
	chain filter_OUTPUT {
		type filter hook output priority filter + 10; policy accept;
		ct state { established, related } counter accept
		oifname "lo" counter accept
		ip6 daddr { ::/96, ::ffff:0.0.0.0/96 } counter reject with icmpv6 addr-unreachable
		counter
	}
	chain filter_INPUT_ZONES {
		iifname "ext0" counter goto filter_IN_external
		iifname "int0" counter goto filter_IN_internal
		counter goto filter_IN_external
	}
	chain filter_FORWARD_POLICIES {
		iifname "int0" oifname "ext0" counter jump filter_FWD_int_ext
		iifname "ext0" oifname "int0" counter jump filter_FWD_ext_int
	}
	chain filter_IN_external {
		counter jump filter_IN_external_deny
		counter jump filter_IN_external_allow
		meta l4proto { icmp, ipv6-icmp } counter accept
	}
	chain filter_IN_external_deny {
		ip saddr 192.0.2.80 tcp dport 23 counter drop
	}
	chain filter_IN_external_allow {
		tcp dport 22 ct state { new, untracked } counter accept
		tcp dport 80 ct state { new, untracked } counter accept
	}
	chain filter_IN_internal {
		counter jump filter_IN_internal_allow
		meta l4proto { icmp, ipv6-icmp } counter accept
	}
	chain filter_IN_internal_allow {
		tcp dport 8080 ct state { new, untracked } counter accept
		udp dport 53 ct state { new, untracked } counter accept
		ip daddr 224.0.0.251 udp dport 5353 counter accept
		ip6 daddr fe80::/64 udp dport 546 counter accept
	}
	chain filter_FWD_int_ext {
		counter accept
	}
	chain filter_FWD_ext_int {
		meta l4proto { icmp, ipv6-icmp } counter accept
		tcp dport 8443 counter drop
	}
}
R
}
nft_alone
