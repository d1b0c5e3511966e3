# Flows from before the capture as in midstream, with a host folder that has no list of connections.
# needs: python3 curl ping dnsmasq dig socat
# inbound: nothing tells the ports that were translated before.
unlisted=1
