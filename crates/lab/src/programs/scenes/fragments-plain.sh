# The fragments of fragments at a router without connection tracking: each passes by itself.
# needs: ping scapy socat
untracked=1
