# The three kinds at once, with a filter of each at one priority, so that only the order in which they were loaded tells
# who sees a packet first; registered.txt in the folder has it.
# needs: nginx curl dnsmasq dig ping traceroute nmap nft iptables-nft-restore
# one: wan0
