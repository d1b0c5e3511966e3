# Forged sources and scans as in spoofed, at a router whose kernel filters by the route back (rp_filter 1).
# needs: nginx curl nmap hping3 ping scapy
rp_filter=1
