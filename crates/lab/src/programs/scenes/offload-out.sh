# Superframes come in, segments go out: the router's outer interface without offload.
# needs: nginx curl iperf3 ethtool dd
offload="r:wan0"
