# The router's packets as its own first rules log them (NFLOG), beside the taps.
# needs: nginx curl dnsmasq dig ping traceroute nmap
nflog=5
