# A host with three kinds of rules at once: a table inet of nft, tables of iptables-nft and tables of iptables-legacy, whose
# turns at a hook differ by their priorities.
# needs: nginx curl dnsmasq dig ping traceroute nmap nft iptables-nft-restore
# one: wan0
