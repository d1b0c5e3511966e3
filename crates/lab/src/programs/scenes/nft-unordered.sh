# The same without registered.txt: nothing tells who sees a packet first, so much is unknown and nothing may be wrong.
# needs: nginx curl dnsmasq dig ping traceroute nmap nft iptables-nft-restore
# hidden: 98: the order of registration is not told.
# inbound: likewise.
