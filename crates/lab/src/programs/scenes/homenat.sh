# A home router: MASQUERADE, port forwards with hairpin, FTP (passive, active) and TFTP through their helpers.
# needs: nginx curl dnsmasq dig ping traceroute vsftpd in.tftpd socat
# unseen: ip raw OUTPUT 1: nat drops the redirects that a hairpin gives rise to, before they reach a device.

setup() {
    ns c d sw r s
    wire c eth0 sw p1
    wire d eth0 sw p2
    wire r lan0 sw p3
    ip -n sw link add br0 type bridge
    ip -n sw link set br0 up
    for port in p1 p2 p3; do ip -n sw link set $port master br0; done
    at sw sysctl -qw net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0
    wire s eth0 r wan0
    addr c eth0 192.168.1.10/24
    addr d eth0 192.168.1.11/24
    addr r lan0 192.168.1.1/24
    addr r wan0 203.0.113.2/24
    addr s eth0 203.0.113.1/24 203.0.113.80/24
    ip -n c route add default via 192.168.1.1
    ip -n d route add default via 192.168.1.1
    ip -n r route add default via 203.0.113.1
    forwarding r
    web s 80
    web c 80
    names s
    mkdir -p $lab/ftp $lab/tftp $lab/empty
    head -c $((${big:-3000000} / 10)) /dev/zero >$lab/ftp/file
    head -c $((${big:-3000000} / 150)) /dev/zero >$lab/tftp/file
    chmod -R a+rX $lab; chmod a-w $lab/ftp
    printf '%s\n' listen=YES background=NO anonymous_enable=YES anon_root=$lab/ftp secure_chroot_dir=$lab/empty \
        run_as_launching_user=NO ftp_username=daemon nopriv_user=nobody connect_from_port_20=YES xferlog_enable=NO \
        seccomp_sandbox=NO isolate=NO isolate_network=NO no_anon_password=YES >$lab/vsftpd.conf
    at s vsftpd $lab/vsftpd.conf >$lab/vsftpd.err 2>&1 &
    at s in.tftpd -L --address 203.0.113.80:69 --user nobody --secure $lab/tftp &
    listens s 80
    listens s 21
    listens s 69 udp
}

rules() {
    legacy_rules <<'R'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -i lan0 -p tcp -m tcp --dport 21 -j CT --helper ftp
-A PREROUTING -i lan0 -p udp -m udp --dport 69 -j CT --helper tftp
-A OUTPUT -p icmp -m icmp --icmp-type 5
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d 203.0.113.2/32 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 192.168.1.10:80
-A PREROUTING -i wan0 -p udp -m udp --dport 5000:5010 -j DNAT --to-destination 192.168.1.11
-A POSTROUTING -s 192.168.1.0/24 -d 192.168.1.10/32 -p tcp -m tcp --dport 80 -j MASQUERADE
-A POSTROUTING -o wan0 -j MASQUERADE
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lan0 -j ACCEPT
-A INPUT -i wan0 -p icmp -m icmp --icmp-type 8 -m limit --limit 5/sec --limit-burst 5 -j ACCEPT
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED -m helper --helper ftp -j ACCEPT
-A FORWARD -m conntrack --ctstate RELATED -m helper --helper tftp -j ACCEPT
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT
-A FORWARD -i lan0 -o wan0 -j ACCEPT
-A OUTPUT -m conntrack --ctstate INVALID -j DROP
COMMIT
R
}

traffic() {
    get c http://203.0.113.80/small http://203.0.113.80/small
    get d http://203.0.113.80/big
    (get c http://203.0.113.80/small & get d http://203.0.113.80/small & wait)
    look_up c 203.0.113.80
    look_up d 203.0.113.80
    echoes c 203.0.113.80 4
    echoes d 203.0.113.80 4
    get c ftp://203.0.113.80/file
    get c --disable-epsv ftp://203.0.113.80/file
    get c --disable-eprt --ftp-port - ftp://203.0.113.80/file
    get d --ftp-port - ftp://203.0.113.80/file
    get c tftp://203.0.113.80/file
    get d tftp://203.0.113.80/file
    get s http://203.0.113.2:8080/small
    get s http://203.0.113.2:8080/big
    get d http://203.0.113.2:8080/small
    get s http://203.0.113.2:81/
    echo hello | at s socat -T 0.2 - UDP:203.0.113.2:5001
    echoes s 203.0.113.2 8
    echoes c 192.168.1.1 2
    at c traceroute -n -q 1 -w 0.3 -m 3 203.0.113.80
    get r http://203.0.113.80/small
}
