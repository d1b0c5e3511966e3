# Docker's backend of nft: a table docker-bridges whose maps of devices jump to each bridge's chains, ports published by
# DNAT and by a proxy, containers not to be had around their published ports, two bridges that are kept apart.
# needs: nginx curl dnsmasq dig ping python3 socat nft
# one: eth0
