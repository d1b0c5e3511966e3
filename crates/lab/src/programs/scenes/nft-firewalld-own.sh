# firewalld itself: its daemon loads zones, services, a policy, rich rules and sets into nft, whose rules get a counter each.
# needs: nginx curl dnsmasq dig ping nmap hping3 nft firewalld firewall-cmd dbus-daemon
# one: ext0
