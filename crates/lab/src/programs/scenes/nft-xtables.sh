# A host whose iptables is that of xtables: tables of iptables-legacy and two of nft, at other priorities.
# needs: nginx curl dnsmasq dig ping traceroute nmap nft
# one: wan0
