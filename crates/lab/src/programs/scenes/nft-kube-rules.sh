
rules() {
    nft_rules <<'R'
table ip kube-proxy {
	set cluster-ips {
		type ipv4_addr
		elements = { 10.96.0.10, 10.96.0.80, 10.96.0.81, 10.96.0.82, 10.96.0.99 }
	}
	set nodeport-ips {
		type ipv4_addr
		elements = { 192.0.2.10 }
	}
	set affinity-A {
		type ipv4_addr
		size 65536
		flags dynamic,timeout
		timeout 3h
	}
	set affinity-B {
		type ipv4_addr
		size 65536
		flags dynamic,timeout
		timeout 3h
	}
	map no-endpoint-services {
		type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.0.99 . tcp . 80 : goto reject-chain }
	}
	map no-endpoint-nodeports {
		type inet_proto . inet_service : verdict
	}
	map service-ips {
		type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.0.10 . udp . 53 : goto service-dns,
			     10.96.0.80 . tcp . 80 : goto service-web,
			     10.96.0.81 . tcp . 80 : goto service-second,
			     10.96.0.82 . tcp . 80 : goto service-sticky }
	}
	map service-nodeports {
		type inet_proto . inet_service : verdict
		elements = { tcp . 30080 : goto external-web }
	}
	chain filter-prerouting {
		type filter hook prerouting priority dstnat - 10; policy accept;
		ct state new counter jump firewall-check
	}
	chain filter-input {
		type filter hook input priority -110; policy accept;
		ct state new counter jump nodeport-endpoints-check
		ct state new counter jump service-endpoints-check
	}
	chain filter-forward {
		type filter hook forward priority -110; policy accept;
		ct state new counter jump service-endpoints-check
		ct state new counter jump cluster-ips-check
	}
	chain filter-output {
		type filter hook output priority -110; policy accept;
		ct state new counter jump service-endpoints-check
		ct state new counter jump firewall-check
	}
	chain filter-output-post-dnat {
		type filter hook output priority -90; policy accept;
		ct state new counter jump cluster-ips-check
	}
	chain nat-prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		counter jump services
	}
	chain nat-output {
		type nat hook output priority -100; policy accept;
		counter jump services
	}
	chain nat-postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		counter jump masquerading
	}
	chain firewall-check {
		counter
	}
	chain nodeport-endpoints-check {
		ip daddr @nodeport-ips counter meta l4proto . th dport vmap @no-endpoint-nodeports
	}
	chain service-endpoints-check {
		counter ip daddr . meta l4proto . th dport vmap @no-endpoint-services
	}
	chain cluster-ips-check {
		ip daddr @cluster-ips counter reject comment "invalid port of a service"
		ip daddr 10.96.0.0/16 counter drop comment "no service"
	}
	chain reject-chain {
		counter reject
	}
	chain services {
		counter ip daddr . meta l4proto . th dport vmap @service-ips
		ip daddr @nodeport-ips counter meta l4proto . th dport vmap @service-nodeports
	}
	chain mark-for-masquerade {
		counter meta mark set meta mark | 0x4000
	}
	chain masquerading {
		meta mark & 0x4000 == 0 counter return
		counter meta mark set meta mark ^ 0x4000
		counter masquerade fully-random
	}
	chain external-web {
		counter jump mark-for-masquerade
		counter goto service-web
	}
	chain service-web {
		ip daddr 10.96.0.80 tcp dport 80 ip saddr != 10.244.0.0/16 counter jump mark-for-masquerade
		counter numgen random mod 2 vmap { 0 : goto endpoint-A, 1 : goto endpoint-B }
	}
	chain service-second {
		ip daddr 10.96.0.81 tcp dport 80 ip saddr != 10.244.0.0/16 counter jump mark-for-masquerade
		counter numgen random mod 2 vmap { 0 : goto endpoint-A, 1 : goto endpoint-B }
	}
	chain service-dns {
		counter numgen random mod 2 vmap { 0 : goto endpoint-dns-A, 1 : goto endpoint-dns-B }
	}
	chain service-sticky {
		ip saddr @affinity-A counter goto endpoint-sticky-A
		ip saddr @affinity-B counter goto endpoint-sticky-B
		counter numgen random mod 2 vmap { 0 : goto endpoint-sticky-A, 1 : goto endpoint-sticky-B }
	}
	chain endpoint-A {
		ip saddr 10.244.1.2 counter jump mark-for-masquerade
		meta l4proto tcp counter dnat to 10.244.1.2:8080
	}
	chain endpoint-B {
		ip saddr 10.244.1.3 counter jump mark-for-masquerade
		meta l4proto tcp counter dnat to 10.244.1.3:8080
	}
	chain endpoint-dns-A {
		meta l4proto udp counter dnat to 10.244.1.2:53
	}
	chain endpoint-dns-B {
		meta l4proto udp counter dnat to 10.244.1.3:53
	}
	chain endpoint-sticky-A {
		counter update @affinity-A { ip saddr }
		meta l4proto tcp counter dnat to 10.244.1.2:8080
	}
	chain endpoint-sticky-B {
		counter update @affinity-B { ip saddr }
		meta l4proto tcp counter dnat to 10.244.1.3:8080
	}
}
R
}
nft_alone
