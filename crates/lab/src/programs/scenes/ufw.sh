# A host under ufw's own rules, both families: allowed, limited, denied and rejected services, broadcast noise.
# needs: ufw nginx curl dnsmasq dig ping ping6 nmap hping3 socat
# inbound: most connections are the host's, and its own packets are not recorded.
settle=0.1
quiet=0.5
# ufw takes a second to load its rules: they are there before the captures.
early_rules=1

setup() {
    # ufw calls `iptables`; here that is the legacy one. Its files are a copy of its own.
    mount --bind /usr/sbin/xtables-legacy-multi /usr/sbin/xtables-nft-multi
    mkdir -p $lab/ufw $lab/default
    cp -a /usr/share/ufw/iptables/. $lab/ufw/
    cp -a /etc/ufw/. $lab/ufw/
    mount --bind $lab/ufw /etc/ufw
    ns r s
    wire s eth0 r eth0
    addr r eth0 192.0.2.10/24 2001:db8::10/64
    addr s eth0 192.0.2.1/24 2001:db8::1/64
    ip -n r route add default via 192.0.2.1
    ip -n r route add default via 2001:db8::1
    web r 80 8080 9090
    web s 80
    names s
    listens r 80
    listens s 80
    listens s 53 udp
}

rules() {
    {
        at r ufw --force enable
        at r ufw allow 80/tcp
        at r ufw limit 22/tcp
        at r ufw deny 8080/tcp
        at r ufw reject 9090/tcp
        at r ufw allow from 192.0.2.1 to any port 5000:5010 proto udp
        at r ufw deny out 25/tcp
        at r ufw reject out 26/tcp
    } >"$out/ufw.log" 2>&1
    at r sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=0
}

traffic() {
    get s http://192.0.2.10/small
    get s http://192.0.2.10/big
    get s http://192.0.2.10:8080/small
    get s http://192.0.2.10:9090/small
    get s 'http://[2001:db8::10]/small'
    get s 'http://[2001:db8::10]:8080/small'
    get s 'http://[2001:db8::10]:9090/small'
    get r http://192.0.2.1/small
    get r http://192.0.2.1/big
    get r 'http://[2001:db8::1]/small'
    get r http://192.0.2.1:25/
    get r http://192.0.2.1:26/
    get r http://127.0.0.1:8080/small
    look_up r 192.0.2.1
    look_up r 2001:db8::1
    echoes s 192.0.2.10 3
    echoes s 2001:db8::10 3
    echoes r 192.0.2.1 3
    echoes s 192.0.2.255 2 -b
    echoes s ff02::1%eth0 2
    at s hping3 -q -i u20000 -c 8 -S -p 22 192.0.2.10
    at s nmap -n -Pn -sS --max-retries 0 -p 75-85 192.0.2.10
    at s nmap -n -Pn -sU --max-retries 0 --host-timeout 2s -p 67,68,137,138,1900,5001,5353 192.0.2.10
    at s nmap -6 -n -Pn -sS --max-retries 0 -p 75-85 2001:db8::10
    at s nmap -n -Pn -sA --max-retries 0 -p 80-82 192.0.2.10
    echo noise | at s socat -T 0.1 - UDP-DATAGRAM:255.255.255.255:67,broadcast,sp=68
    echo noise | at s socat -T 0.1 - UDP-DATAGRAM:192.0.2.255:137,broadcast,sp=137
    echo noise | at s socat -T 0.1 - UDP-DATAGRAM:224.0.0.251:5353
}
