# The router's rules loaded by iptables-nft: nf_tables counts.
# needs: nginx curl dnsmasq dig ping traceroute nmap iptables-nft-restore
