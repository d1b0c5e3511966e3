# kube-proxy's mode of nft: services in a verdict map of address, protocol and port, endpoints drawn by numgen, marks that
# ask for masquerading, node ports, cluster addresses that nobody serves, a service whose clients stick by dynamic sets.
# needs: python3 curl dnsmasq dig ping socat nft
# one: eth0
