
# A counter before each rule of what is loaded.
count_all() {
    at r nft list ruleset | sed '/^\tchain /,/^\t}/{/^\t\ttype .* hook /!s/^\t\t/&counter /}' >$lab/counted.nft
    { echo flush ruleset; cat $lab/counted.nft; } | at r nft -f -
}

# A policy and sets are configured in its files, which are copies here; what is told to it at last is gone with it.
rules() {
    mkdir -p $lab/firewalld /run/dbus
    cp -r /etc/firewalld/. $lab/firewalld
    mount --bind $lab/firewalld /etc/firewalld
    dbus-daemon --system --fork --nopidfile
    at r firewall-offline-cmd --new-policy=int-ext
    at r firewall-offline-cmd --policy=int-ext --add-ingress-zone=internal
    at r firewall-offline-cmd --policy=int-ext --add-egress-zone=external
    at r firewall-offline-cmd --policy=int-ext --set-target=ACCEPT
    at r firewall-offline-cmd --new-ipset=refused --type=hash:net
    at r firewall-offline-cmd --ipset=refused --add-entry=10.1.0.64/26
    at r firewalld --nofork --nopid &
    local turn
    for turn in $(seq 100); do
        at r firewall-cmd --state >/dev/null 2>&1 && break
        sleep 0.1
    done
    at r firewall-cmd --zone=external --change-interface=ext0
    at r firewall-cmd --zone=internal --change-interface=int0
    at r firewall-cmd --zone=external --add-service=http
    at r firewall-cmd --zone=external --add-forward-port=port=2080:proto=tcp:toport=80
    at r firewall-cmd --zone=external --add-icmp-block=timestamp-request
    at r firewall-cmd --zone=external --add-rich-rule='rule family=ipv4 source address=192.0.2.80 port port=23 protocol=tcp drop'
    at r firewall-cmd --zone=external --add-rich-rule='rule source ipset=refused drop'
    at r firewall-cmd --zone=external --add-rich-rule='rule family=ipv4 port port=24 protocol=tcp log prefix="telnet " limit value=3/m reject'
    at r firewall-cmd --zone=internal --add-port=8080/tcp
    at r firewall-cmd --zone=internal --add-service=dns
    count_all
} >/dev/null
nft_alone
