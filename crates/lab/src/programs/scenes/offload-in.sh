# Segments come in by the LAN, superframes by the other side; the host there and the LAN's router port without offload.
# needs: nginx curl iperf3 ethtool dd
offload="c:eth0 r:lan0"
