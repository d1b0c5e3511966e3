use super::super::parse;
use super::in_our_words;

#[track_caller]
fn says(line: &str, words: &str) {
    assert_eq!(in_our_words(line).map(Option::unwrap_or_default).as_deref(), Ok(words), "{line}");
    assert!(parse(line).is_ok(), "{:?}", parse(line));
}

#[test]
fn lines_of_the_kernel_s_log() {
    says(
        "Nov 23 10:11:12 gate kernel: [ 12.5] [UFW BLOCK] IN=eth0 OUT= \
         MAC=02:00:00:00:00:01:02:00:00:00:00:02:08:00 SRC=198.51.100.7 DST=192.0.2.1 LEN=60 TOS=0x10 PREC=0x20 \
         TTL=52 ID=1 DF PROTO=TCP SPT=51200 DPT=22 WINDOW=64240 RES=0x00 SYN URGP=0 MARK=0x5 ",
        "tcp 198.51.100.7:51200 > 192.0.2.1:22 syn len=60 in=eth0 mac=02:00:00:00:00:02 mark=0x5 path=input ttl=52 tos=48",
    );
    says(
        "IN=eth1 OUT=eth0 SRC=10.0.0.1 DST=10.0.0.2 LEN=1500 TOS=0x00 PREC=0x00 TTL=63 ID=7 MF FRAG:185 PROTO=UDP ",
        "17 10.0.0.1 > 10.0.0.2 len=1500 in=eth1 out=eth0 path=forward ttl=63 frag=1480+",
    );
    says(
        "IN= OUT=eth0 SRC=2001:db8::1 DST=2001:db8::2 LEN=104 TC=0 HOPLIMIT=64 FLOWLBL=1 PROTO=ICMPv6 TYPE=128 \
         CODE=0 ID=1 SEQ=1 ",
        "icmpv6 2001:db8::1 > 2001:db8::2 128 len=104 out=eth0 path=output ttl=64",
    );
    says(
        "x: IN=eth0 OUT= SRC=10.0.0.9 DST=10.0.0.1 LEN=56 TOS=0x00 PREC=0xC0 TTL=64 ID=3 PROTO=ICMP TYPE=3 CODE=3 \
         [SRC=10.0.0.1 DST=10.0.0.9 LEN=28 TOS=0x00 PREC=0x00 TTL=64 ID=4 PROTO=UDP SPT=1 DPT=2 LEN=8 ] ",
        "icmp 10.0.0.9 > 10.0.0.1 3/3 len=56 in=eth0 path=input ttl=64 tos=192",
    );
    says(
        "IN=br0 OUT= ARP HTYPE=1 PTYPE=0x0800 OPCODE=1 MACSRC=02:00:00:00:00:01 IPSRC=10.0.0.1 \
         MACDST=00:00:00:00:00:00 IPDST=10.0.0.2",
        "arp who-has 10.0.0.2 tell 10.0.0.1 in=br0",
    );
    says(
        "IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 LEN=40 TOS=0x00 PREC=0x00 TTL=64 ID=0 PROTO=47 ",
        "47 10.0.0.1 > 10.0.0.2 len=40 in=eth0 path=input ttl=64",
    );
}

#[test]
fn packets_of_nft_s_traces() {
    says(
        "trace id 5dd2c64a ip filter input packet: iif \"eth0\" ether saddr 02:00:00:00:00:02 ether daddr \
         02:00:00:00:00:01 ip saddr 10.0.0.1 ip daddr 10.0.0.2 ip dscp cs0 ip ecn not-ect ip ttl 64 ip id 1 ip \
         protocol tcp ip length 60 tcp sport 51200 tcp dport 22 tcp flags == syn tcp window 64240",
        "tcp 10.0.0.1:51200 > 10.0.0.2:22 syn len=60 in=eth0 mac=02:00:00:00:00:02 ttl=64",
    );
    says(
        "trace id 1 ip6 t c packet: oif \"eth0\" ip6 saddr 2001:db8::1 ip6 daddr 2001:db8::2 ip6 dscp cs0 ip6 \
         hoplimit 64 ip6 nexthdr ipv6-icmp ip6 length 64 icmpv6 type echo-request icmpv6 code 0",
        "icmpv6 2001:db8::1 > 2001:db8::2 echo-request len=104 out=eth0 ttl=64",
    );
    let verdict = "trace id 5dd2c64a ip filter input rule tcp dport 22 accept (verdict accept)";
    assert_eq!(in_our_words(verdict), Ok(None));
}

#[test]
fn connections_as_they_are_listed() {
    says(
        "tcp      6 431999 ESTABLISHED src=10.0.0.1 dst=192.0.2.9 sport=51200 dport=443 src=192.0.2.9 \
         dst=198.51.100.2 sport=443 dport=51200 [ASSURED] mark=0 use=1",
        "tcp 10.0.0.1:51200 > 192.0.2.9:443 ack ctstate=ESTABLISHED",
    );
    says(
        "ipv4     2 udp      17 28 src=10.0.0.1 dst=10.0.0.2 sport=53000 dport=53 [UNREPLIED] src=10.0.0.2 \
         dst=10.0.0.1 sport=53 dport=53000 mark=0 zone=0 use=2",
        "udp 10.0.0.1:53000 > 10.0.0.2:53 ctstate=NEW",
    );
    says(
        " [NEW] icmp     1 30 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=5 [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 \
         type=0 code=0 id=5",
        "icmp 10.0.0.1 > 10.0.0.2 8 ctstate=NEW",
    );
    says(
        "unknown  47 599 src=10.0.0.1 dst=10.0.0.2 src=10.0.0.2 dst=10.0.0.1 mark=0 use=1",
        "47 10.0.0.1 > 10.0.0.2 ctstate=ESTABLISHED",
    );
}

#[test]
fn lines_of_tcpdump() {
    says(
        "12:00:01.500000 IP 10.0.0.1.51200 > 10.0.0.2.22: Flags [S], seq 1, win 64240, length 0",
        "tcp 10.0.0.1:51200 > 10.0.0.2:22 syn",
    );
    says(
        "2026-11-23 12:00:01.5 eth0  In  IP 10.0.0.2.ssh > 10.0.0.1.51200: Flags [S.], seq 1, ack 2, length 0",
        "tcp 10.0.0.2:22 > 10.0.0.1:51200 syn,ack in=eth0",
    );
    says(
        "12:00:01.5 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype IPv6 (0x86dd), length 94: IP6 \
         2001:db8::1.4000 > 2001:db8::2.53: 12345+ A? example.org. (29)",
        "udp [2001:db8::1]:4000 > [2001:db8::2]:53 mac=02:00:00:00:00:01",
    );
    says(
        "12:00:01.5 IP (tos 0x10, ttl 63, id 1, offset 0, flags [DF], proto TCP (6), length 60)    \
         10.0.0.1.51200 > 10.0.0.2.22: Flags [P.], cksum 0x1, seq 1:9, ack 1, win 502, length 8",
        "tcp 10.0.0.1:51200 > 10.0.0.2:22 psh,ack len=60 tos=16 ttl=63",
    );
    says(
        "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 1, seq 1, length 64",
        "icmp 10.0.0.1 > 10.0.0.2 echo-request",
    );
    says(
        "IP 10.0.0.2 > 10.0.0.1: ICMP 10.0.0.2 udp port 53 unreachable, length 36",
        "icmp 10.0.0.2 > 10.0.0.1 destination-unreachable/3",
    );
    says(
        "IP6 fe80::1 > ff02::1:ff00:2: ICMP6, neighbor solicitation, who has fe80::2, length 32",
        "icmpv6 fe80::1 > ff02::1:ff00:2 neighbour-solicitation",
    );
    says(
        "IP 10.0.0.1.5 > 10.0.0.2.6081: Geneve, Flags [none], vni 0x1: IP 10.1.0.1 > 10.1.0.2: ICMP echo request",
        "udp 10.0.0.1:5 > 10.0.0.2:6081",
    );
    says(
        "IP 10.0.0.1 > 10.0.0.2: GREv0, key=0x1, length 8: IP 10.1.0.1.1 > 10.1.0.2.2: Flags [S]",
        "gre 10.0.0.1 > 10.0.0.2",
    );
    says(
        "IP 10.0.0.1 > 10.0.0.2: IP 10.1.0.1.1 > 10.1.0.2.2: Flags [S], length 0",
        "4 10.0.0.1 > 10.0.0.2",
    );
    says(
        "IP6 2001:db8::1.5 > 2001:db8::2.22: HBH Flags [S], seq 1, length 0",
        "tcp [2001:db8::1]:5 > [2001:db8::2]:22 syn",
    );
    says("IP 10.0.0.1 > 10.0.0.2: ESP(spi=0x1,seq=0x1), length 100", "esp 10.0.0.1 > 10.0.0.2");
    says(
        "ARP, Request who-has 10.0.0.2 tell 10.0.0.1, length 28",
        "arp who-has 10.0.0.2 tell 10.0.0.1",
    );
}

#[test]
fn what_cannot_be_read_of_a_line_is_named() {
    let at = |line: &str| parse(line).map_err(|error| (error.column, error.what)).unwrap_err();
    let (column, what) = at("IP host.example.51200 > 10.0.0.2.22: Flags [S]");
    assert_eq!((column, what.contains("tcpdump -n")), (4, true), "{what}");
    assert_eq!(at("IP 10.0.0.1.1 > 10.0.0.2.2: Flags [Q], length 0").0, 35);
    assert_eq!(at("IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0 PROTO=TCP").0, 31);
    assert_eq!(at("IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 PROTO=XYZ").0, 46);
    assert_eq!(at("tcp 6 1 NEW src=10.0.0.1 dst=10.0.0.2 sport=x dport=2").0, 45);
}

#[test]
fn what_people_write_is_understood() {
    for (loose, strict) in [
        ("tcp 10.0.0.1 > 10.0.0.2:ssh", "tcp 10.0.0.1:49152 > 10.0.0.2:22 syn"),
        ("TCP 10.0.0.1:5 -> 10.0.0.2:22 SYN,ACK", "tcp 10.0.0.1:5 > 10.0.0.2:22 syn,ack"),
        ("ping 10.0.0.1 > 10.0.0.2", "icmp 10.0.0.1 > 10.0.0.2 echo-request"),
        ("ping 2001:db8::1 > 2001:db8::2", "icmpv6 2001:db8::1 > 2001:db8::2 echo-request"),
        ("udp 2001:db8::1 -> [2001:db8::2]:domain", "udp [2001:db8::1]:49152 > [2001:db8::2]:53"),
    ] {
        assert_eq!(parse(loose), parse(strict), "{loose}");
    }
}
