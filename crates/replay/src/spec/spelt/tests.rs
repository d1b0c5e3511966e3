use super::super::parse;
fn in_our_words(text: &str) -> Result<Option<String>, crate::spec::SpecError> {
    Ok(super::line(text)?.map(|line| line.words))
}

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
        "tcp 198.51.100.7:51200 > 192.0.2.1:22 syn len=60 in=eth0 mac=02:00:00:00:00:02 id=1 df=yes mark=0x5 path=input ttl=52 \
         tos=48 win=64240",
    );
    says(
        "IN=eth1 OUT=eth0 SRC=10.0.0.1 DST=10.0.0.2 LEN=1500 TOS=0x00 PREC=0x00 TTL=63 ID=7 MF FRAG:185 PROTO=UDP ",
        "17 10.0.0.1 > 10.0.0.2 len=1500 in=eth1 out=eth0 id=7 path=forward ttl=64 frag=1480+",
    );
    says(
        "IN= OUT=eth0 SRC=2001:db8::1 DST=2001:db8::2 LEN=104 TC=0 HOPLIMIT=64 FLOWLBL=1 PROTO=ICMPv6 TYPE=128 \
         CODE=0 ID=1 SEQ=1 ",
        "icmpv6 2001:db8::1 > 2001:db8::2 128 len=104 out=eth0 label=1 path=output ttl=64",
    );
    says(
        "x: IN=eth0 OUT= SRC=10.0.0.9 DST=10.0.0.1 LEN=56 TOS=0x00 PREC=0xC0 TTL=64 ID=3 PROTO=ICMP TYPE=3 CODE=3 \
         [SRC=10.0.0.1 DST=10.0.0.9 LEN=28 TOS=0x00 PREC=0x00 TTL=64 ID=4 PROTO=UDP SPT=1 DPT=2 LEN=8 ] ",
        "icmp 10.0.0.9 > 10.0.0.1 3/3 len=56 in=eth0 id=3 path=input ttl=64 tos=192",
    );
    says(
        "IN=br0 OUT= ARP HTYPE=1 PTYPE=0x0800 OPCODE=1 MACSRC=02:00:00:00:00:01 IPSRC=10.0.0.1 \
         MACDST=00:00:00:00:00:00 IPDST=10.0.0.2",
        "arp who-has 10.0.0.2 tell 10.0.0.1 in=br0",
    );
    says(
        "IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 LEN=40 TOS=0x00 PREC=0x00 TTL=64 ID=0 PROTO=47 ",
        "47 10.0.0.1 > 10.0.0.2 len=40 in=eth0 id=0 path=input ttl=64",
    );
}

/// What is forwarded was logged with a time to live that is lowered already, unless a bridge passed it on; what goes out by
/// `lo` comes back in; a line of TRACE in PREROUTING does not say where its packet goes.
#[test]
fn a_line_of_the_log_tells_of_the_packet_as_it_came() {
    let end = "SRC=10.0.0.1 DST=10.0.0.2 LEN=40 TOS=0x00 PREC=0x00 TTL=1 ID=0 PROTO=47 ";
    for (start, words) in [
        ("IN=eth0 OUT=eth1", "in=eth0 out=eth1 id=0 path=forward ttl=2"),
        ("IN=br0 OUT=br0 PHYSIN=p1 PHYSOUT=p2", "in=br0 out=br0 id=0 path=forward ttl=1"),
        ("IN=br0 OUT= PHYSIN=p1", "in=br0 id=0 path=input ttl=1"),
        ("IN= OUT=lo", "out=lo id=0 ttl=1"),
        ("TRACE: raw:PREROUTING:rule:1 IN=eth0 OUT=", "in=eth0 id=0 ttl=1"),
        ("TRACE: filter:INPUT:rule:1 IN=eth0 OUT=", "in=eth0 id=0 path=input ttl=1"),
        ("x:IN=eth0 OUT=", "in=eth0 id=0 path=input ttl=1"),
    ] {
        says(&format!("{start} {end}"), &format!("47 10.0.0.1 > 10.0.0.2 len=40 {words}"));
    }
}

#[test]
fn the_prefix_of_a_line_is_what_stands_between_the_program_s_words_and_the_packet() {
    let prefix = |line: &str| {
        let line = format!("{line}IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 PROTO=47 ");
        parse(&line).unwrap().logged.map(|prefix| (prefix.text, prefix.is_whole))
    };
    let is = |text: &str, is_whole| Some((text.to_owned(), is_whole));
    for (line, wanted) in [
        ("", None),
        ("Nov 26 10:11:12 gate kernel: [   12.500000] [UFW BLOCK] ", is("[UFW BLOCK] ", true)),
        ("Nov 26 10:11:12 gate kernel: a:", is("a:", true)),
        ("Nov 26 10:11:12 gate kernel: ", is("", true)),
        ("2026-11-26T10:11:12+00:00 gate kernel: IN or out? ", is("IN or out? ", true)),
        ("<4>[   12.500000] x ", is("x ", true)),
        ("[Thu Nov 26 10:11:12 2026] [x] ", is("[x] ", true)),
        // Prefixes that look much like a time.
        ("[INF] ", is("[INF] ", false)),
        ("[NAN] ", is("[NAN] ", false)),
        ("[1] ", is("[1] ", false)),
        ("[1.2] ", is("[1.2] ", false)),
        ("<> ", is("<> ", false)),
        ("[1e5] ", is("[1e5] ", false)),
        ("[fw:in:drop] ", is("[fw:in:drop] ", false)),
        ("kernel: [INF] ", is("[INF] ", true)),
        ("[UFW BLOCK] ", is("[UFW BLOCK] ", false)),
        ("Nov 26 10:11:12 gate x ", is("Nov 26 10:11:12 gate x ", false)),
    ] {
        assert_eq!(prefix(line), wanted, "{line}");
    }
}

#[test]
fn packets_of_nft_s_traces() {
    says(
        "trace id 5dd2c64a ip filter input packet: iif \"eth0\" ether saddr 02:00:00:00:00:02 ether daddr \
         02:00:00:00:00:01 ip saddr 10.0.0.1 ip daddr 10.0.0.2 ip dscp cs0 ip ecn not-ect ip ttl 64 ip id 1 ip \
         protocol tcp ip length 60 tcp sport 51200 tcp dport 22 tcp flags == syn tcp window 64240",
        "tcp 10.0.0.1:51200 > 10.0.0.2:22 syn len=60 in=eth0 mac=02:00:00:00:00:02 ttl=64 id=1 win=64240",
    );
    says(
        "trace id 1 ip6 t c packet: oif \"eth0\" ip6 saddr 2001:db8::1 ip6 daddr 2001:db8::2 ip6 dscp cs0 ip6 \
         hoplimit 64 ip6 nexthdr ipv6-icmp ip6 length 64 icmpv6 type echo-request icmpv6 code 0",
        "icmpv6 2001:db8::1 > 2001:db8::2 echo-request len=104 out=eth0 ttl=64",
    );
    says(
        "trace id 1 ip6 t c packet: iif \"eth0\" ip6 saddr 2001:db8::1 ip6 daddr 2001:db8::2 ip6 nexthdr ipv6-icmp ip6 length 32 \
         icmpv6 type nd-neighbor-solicit icmpv6 code no-route",
        "icmpv6 2001:db8::1 > 2001:db8::2 135 len=72 in=eth0",
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
        "tcp 10.0.0.1:51200 > 10.0.0.2:22 syn len=40 seq=1 win=64240 options=none",
    );
    says(
        "2026-11-23 12:00:01.5 eth0  In  IP 10.0.0.2.ssh > 10.0.0.1.51200: Flags [S.], seq 1, ack 2, length 0",
        "tcp 10.0.0.2:22 > 10.0.0.1:51200 syn,ack len=40 in=eth0 seq=1 ack=2 options=none",
    );
    says(
        "12:00:01.5 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype IPv6 (0x86dd), length 94: IP6 \
         2001:db8::1.4000 > 2001:db8::2.53: 12345+ A? example.org. (29)",
        "udp [2001:db8::1]:4000 > [2001:db8::2]:53 len=77 mac=02:00:00:00:00:01 dns=example.org. A",
    );
    says(
        "12:00:01.5 IP (tos 0x10, ttl 63, id 1, offset 0, flags [DF], proto TCP (6), length 60)    \
         10.0.0.1.51200 > 10.0.0.2.22: Flags [P.], cksum 0x1, seq 1:9, ack 1, win 502, length 8",
        "tcp 10.0.0.1:51200 > 10.0.0.2:22 psh,ack len=60 tos=16 ttl=63 id=1 df=yes win=502 options=none",
    );
    says(
        "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 1, seq 1, length 64",
        "icmp 10.0.0.1 > 10.0.0.2 echo-request len=84",
    );
    says(
        "IP 10.0.0.2 > 10.0.0.1: ICMP 10.0.0.2 udp port 53 unreachable, length 36",
        "icmp 10.0.0.2 > 10.0.0.1 destination-unreachable/3 len=56",
    );
    says(
        "IP6 fe80::1 > ff02::1:ff00:2: ICMP6, neighbor solicitation, who has fe80::2, length 32",
        "icmpv6 fe80::1 > ff02::1:ff00:2 neighbour-solicitation len=72",
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
    says(
        "12:00:01.5 lan0  M   IP6 :: > ff02::16: HBH ICMP6, multicast listener report v2, 1 group record(s), length 28",
        "icmpv6 :: > ff02::16 143 in=lan0",
    );
    says(
        "IP 10.0.0.1 > 10.0.0.2: ESP(spi=0x1,seq=0x1), length 100",
        "esp 10.0.0.1 > 10.0.0.2 len=120 spi=0x1",
    );
    says(
        "IP 10.0.0.1.51200 > 10.0.0.2.22: Flags [S], seq 5, win 64240, options [mss 1460,sackOK,TS val 9 ecr 0,nop,\
         wscale 7], length 0",
        "tcp 10.0.0.1:51200 > 10.0.0.2:22 syn len=60 seq=5 win=64240 options=mss:1460,sack,ts:9:0,nop,wscale:7",
    );
    says(
        "IP 10.0.0.1.6001 > 10.0.0.2.53: 12345+ [1au] A? example.org. (40)",
        "udp 10.0.0.1:6001 > 10.0.0.2:53",
    );
    says("IP 10.0.0.1 > 10.0.0.2: icmp", "1 10.0.0.1 > 10.0.0.2");
    says("IP 10.0.0.1.5 > 10.0.0.2.6: [|udp]", "udp 10.0.0.1:5 > 10.0.0.2:6");
    says("IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 9", "udp 10.0.0.1:5 > 10.0.0.2:6 len=37");
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
    // What a SPEC does not take has the column that it has in the line.
    assert_eq!(at("IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 TTL=256 PROTO=47").0, 44);
    assert_eq!(at("IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 PROTO=47 MARK=9z").0, 54);
    assert_eq!(at("IP 10.0.0.1.1 > 10.0.0.2.2: Flags [.], win 65536, length 0").0, 44);
    assert_eq!(at("IP 10.0.0.1 > 10.0.0.2: ESP(spi=0xz,seq=0x1), length 100").0, 33);
}

/// A SPEC without TCP flags is a SYN, and one of ICMP without a type an echo request; of a line it is not known.
#[test]
fn no_flags_are_made_up_of_a_line_without_them() {
    for rest in
        ["tcp 21", "[|tcp]", "P 1:22(21) ack 1 win 502", ". ack 1 win 502", "S 5:5(0) win 512"]
    {
        let error = parse(&format!("12:00:00.5 IP 10.0.0.1.5 > 10.0.0.2.22: {rest}")).unwrap_err();
        assert!(error.what.contains("tcpdump"), "{rest}: {error}");
    }
    let log = "IN=eth0 OUT= SRC=10.0.0.1 DST=10.0.0.2 LEN=24 PROTO=ICMP INCOMPLETE [4 bytes] ";
    says(log, "1 10.0.0.1 > 10.0.0.2 len=24 in=eth0 path=input");
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
        let frame = |text: &str| parse(text).map(|spec| spec.frame);
        assert_eq!(frame(loose), frame(strict), "{loose}");
    }
}
