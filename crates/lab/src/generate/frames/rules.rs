//! Bridge rules and ARP rules.

use std::fmt::Write;

use super::{Frames, MACS, PORTS, V4, mac_text, v4_text};

impl Frames {
    /// ebtables-save text: tables nat and filter, chains of frames that are forwarded.
    pub fn bridge_rules(&mut self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "*nat\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT");
        self.chain(&mut text, "PREROUTING", 4, &[]);
        self.chain(&mut text, "POSTROUTING", 3, &[]);
        let policies = ["RETURN", "ACCEPT", "DROP"];
        let (one, two) = (self.pick(&policies), self.pick(&policies));
        let policy = self.pick(&["ACCEPT", "ACCEPT", "DROP"]);
        let _ = writeln!(text, "*filter\n:INPUT ACCEPT\n:FORWARD {policy}\n:OUTPUT ACCEPT");
        let _ = writeln!(text, ":one {one}\n:two {two}");
        self.chain(&mut text, "FORWARD", 9, &["one", "two"]);
        self.chain(&mut text, "one", 5, &["two"]);
        self.chain(&mut text, "two", 5, &[]);
        text
    }

    fn chain(&mut self, text: &mut String, chain: &str, most: usize, jumps: &[&str]) {
        for _ in 0..1 + self.rng.usize(..most) {
            let mut rule = format!("-A {chain}");
            self.frame_tests(&mut rule, chain);
            let verdict = match chain {
                _ if !jumps.is_empty() && self.one_in(3) => format!("-j {}", self.pick(jumps)),
                "PREROUTING" if self.one_in(3) => {
                    let mac = mac_text(self.mac());
                    format!("-j dnat --to-dst {mac} --dnat-target {}", self.verdict())
                }
                "POSTROUTING" if self.one_in(3) => {
                    let (mac, arp) = (mac_text(self.pick(&MACS)), self.pick(&["", " --snat-arp"]));
                    format!("-j snat --to-src {mac}{arp} --snat-target {}", self.verdict())
                }
                _ if self.one_in(4) => {
                    let action = self.pick(&["set", "or", "and", "xor"]);
                    let (bits, verdict) = (self.rng.u32(..8), self.verdict());
                    format!("-j mark --mark-{action} {bits:#x} --mark-target {verdict}")
                }
                "one" | "two" => {
                    format!("-j {}", self.pick(&["ACCEPT", "DROP", "CONTINUE", "RETURN"]))
                }
                "FORWARD" => {
                    format!("-j {}", self.pick(&["ACCEPT", "DROP", "CONTINUE", "CONTINUE"]))
                }
                _ => format!("-j {}", self.pick(&["ACCEPT", "CONTINUE", "CONTINUE", "DROP"])),
            };
            let _ = writeln!(text, "{rule} {verdict}");
        }
    }

    fn verdict(&mut self) -> &'static str {
        self.pick(&["ACCEPT", "CONTINUE", "CONTINUE", "DROP"])
    }

    fn frame_tests(&mut self, rule: &mut String, chain: &str) {
        let protocol =
            self.pick(&["", "IPv4", "IPv6", "ARP", "802_1Q", "Length", "0x88cc", "RARP"]);
        if !protocol.is_empty() {
            // A match of its own wants the protocol plain.
            let plain = self.one_in(2);
            let bang = if plain { "" } else { self.bang() };
            let _ = write!(rule, " {bang}-p {protocol}");
            if bang.is_empty() {
                match protocol {
                    "IPv4" => self.ip(rule),
                    "IPv6" => self.ip6(rule),
                    "ARP" | "RARP" => self.arp(rule),
                    "802_1Q" => self.vlan(rule),
                    "Length" => self.llc(rule),
                    _ => {}
                }
            }
        }
        for (option, chance) in [("-s", 4), ("-d", 4)] {
            if self.one_in(chance) {
                let (bang, mac) = (self.bang(), self.masked_mac());
                let _ = write!(rule, " {bang}{option} {mac}");
            }
        }
        let sides = match chain {
            "PREROUTING" => &["-i"][..],
            "POSTROUTING" => &["-o"],
            _ => &["-i", "-o"],
        };
        if self.one_in(6) {
            let (option, name) = (self.pick(sides), self.pick(&["p0", "p1", "p+", "eth0"]));
            let _ = write!(rule, " {}{option} {name}", self.bang());
        }
        if self.one_in(5) {
            let mark = self.pick(&["0x1", "0x2/0x3", "/0x5", "0x0"]);
            let _ = write!(rule, " {}--mark {mark}", self.bang());
        }
        if self.one_in(6) {
            let kind = self.pick(&["broadcast", "multicast", "otherhost", "outgoing"]);
            let _ = write!(rule, " {}--pkttype-type {kind}", self.bang());
        }
        if self.one_in(8) {
            let option = self.pick(&["src", "dst"]);
            let with = self.one_in(2);
            let mut pairs: Vec<String> = Vec::new();
            for _ in 0..1 + self.rng.usize(..3) {
                let mac = mac_text(self.mac());
                // The tool prints a second pair that was not given where only some have an address.
                pairs.push(if with { format!("{mac}={}", v4_text(self.pick(&V4))) } else { mac });
            }
            let _ = write!(rule, " {}--among-{option} {}", self.bang(), pairs.join(","));
        }
        if self.one_in(10) {
            self.stp(rule);
        }
        if self.one_in(8) {
            self.string(rule);
        }
    }

    /// Bytes that frames have, at places where they may be. The tool refuses --string-icase, whatever follows it.
    fn string(&mut self, rule: &mut String) {
        let texts =
            ["--string aa", "--string AAA", "--string-hex |0a0001|", "--string-hex |2001|a"];
        let (bang, text, algorithm) = (self.bang(), self.pick(&texts), self.pick(&["bm", "kmp"]));
        let _ = write!(rule, " {bang}{text} --string-algo {algorithm}");
        let from = if self.one_in(2) { 0 } else { self.rng.u16(..40) };
        if from != 0 {
            let _ = write!(rule, " --string-from {from}");
        }
        if self.one_in(2) {
            let _ = write!(rule, " --string-to {}", from + self.rng.u16(..40));
        }
    }

    fn ip(&mut self, rule: &mut String) {
        for option in ["--ip-src", "--ip-dst"] {
            if self.one_in(3) {
                let (bang, net) = (self.bang(), self.net());
                let _ = write!(rule, " {bang}{option} {net}");
            }
        }
        if self.one_in(5) {
            let _ = write!(rule, " {}--ip-tos 0x{:02X}", self.bang(), self.pick(&[0_u8, 0x10]));
        }
        self.upper(rule, "ip", &["tcp", "udp", "icmp", "igmp", "47", "sctp"]);
    }

    fn ip6(&mut self, rule: &mut String) {
        for option in ["--ip6-src", "--ip6-dst"] {
            if self.one_in(3) {
                let addr = std::net::Ipv6Addr::from(self.v6());
                let mask = self.pick(&["", "/64", "/124"]);
                let _ = write!(rule, " {}{option} {addr}{mask}", self.bang());
            }
        }
        if self.one_in(5) {
            let _ = write!(rule, " {}--ip6-tclass 0x{:02X}", self.bang(), self.pick(&[0_u8, 0x10]));
        }
        self.upper(rule, "ip6", &["tcp", "udp", "ipv6-icmp", "44", "sctp", "0"]);
    }

    fn upper(&mut self, rule: &mut String, name: &str, protocols: &[&str]) {
        if self.one_in(2) {
            return;
        }
        let protocol = self.pick(protocols);
        if self.one_in(4) {
            let _ = write!(rule, " ! --{name}-proto {protocol}");
            return;
        }
        let _ = write!(rule, " --{name}-proto {protocol}");
        match protocol {
            "tcp" | "udp" | "sctp" => {
                for side in ["sport", "dport"] {
                    if self.one_in(2) {
                        let (bang, range) = (self.bang(), self.range(&PORTS));
                        let _ = write!(rule, " {bang}--{name}-{side} {range}");
                    }
                }
            }
            "icmp" | "ipv6-icmp" => {
                let kind = self.pick(&["echo-request", "echo-reply", "3/1", "1:10/0:255"]);
                let _ = write!(rule, " {}--{name}-icmp-type {kind}", self.bang());
            }
            "igmp" => {
                let kind = self.pick(&["membership-query", "leave-group", "18:22"]);
                let _ = write!(rule, " {}--ip-igmp-type {kind}", self.bang());
            }
            _ => {}
        }
    }

    fn arp(&mut self, rule: &mut String) {
        let mut tests: Vec<String> = vec![
            format!("--arp-op {}", self.pick(&["Request", "Reply", "9", "77"])),
            format!("--arp-htype {}", self.pick(&[1, 6])),
            format!("--arp-ptype {}", self.pick(&["0x800", "0x806"])),
            format!("--arp-ip-src {}", self.net()),
            format!("--arp-ip-dst {}", self.net()),
            format!("--arp-mac-src {}", self.masked_mac()),
            format!("--arp-mac-dst {}", self.masked_mac()),
            "--arp-gratuitous".to_owned(),
        ];
        self.rng.shuffle(&mut tests);
        tests.truncate(self.rng.usize(..4));
        for test in tests {
            let _ = write!(rule, " {}{test}", self.bang());
        }
    }

    fn vlan(&mut self, rule: &mut String) {
        // The tool of this machine does not print a priority beside an id.
        if self.one_in(2) {
            let _ = write!(rule, " {}--vlan-id {}", self.bang(), self.pick(&[1, 5, 100]));
        } else if self.one_in(2) {
            let _ = write!(rule, " {}--vlan-prio {}", self.bang(), self.pick(&[0, 3]));
        }
        if self.one_in(2) {
            let kind = self.pick(&["0800", "86DD", "0806"]);
            let _ = write!(rule, " {}--vlan-encap {kind}", self.bang());
        }
    }

    fn llc(&mut self, rule: &mut String) {
        match self.rng.u8(..3) {
            0 => {
                let _ =
                    write!(rule, " {}--802_3-sap {}", self.bang(), self.pick(&["0x42", "0xaa"]));
            }
            1 => {
                let kind = self.pick(&["0x0800", "0x2000"]);
                let _ = write!(rule, " {}--802_3-type {kind}", self.bang());
            }
            _ => {}
        }
    }

    fn stp(&mut self, rule: &mut String) {
        const NUMBERS: [u16; 4] = [0, 1, 0x0100, 0x8000];
        let mut tests: Vec<String> = vec![
            format!("--stp-type {}", self.pick(&["config", "tcn", "2"])),
            format!("--stp-flags {}", self.pick(&["topology-change", "3"])),
            format!("--stp-root-prio {}", self.range(&NUMBERS)),
            format!("--stp-root-addr {}", self.masked_mac()),
            format!("--stp-root-cost {}", self.range(&NUMBERS)),
            format!("--stp-sender-prio {}", self.range(&NUMBERS)),
            format!("--stp-sender-addr {}", self.masked_mac()),
            format!("--stp-port {}", self.range(&NUMBERS)),
            format!("--stp-msg-age {}", self.range(&NUMBERS)),
            format!("--stp-max-age {}", self.range(&NUMBERS)),
            format!("--stp-hello-time {}", self.range(&NUMBERS)),
            format!("--stp-forward-delay {}", self.range(&NUMBERS)),
        ];
        self.rng.shuffle(&mut tests);
        tests.truncate(1 + self.rng.usize(..2));
        for test in tests {
            let _ = write!(rule, " {}{test}", self.bang());
        }
    }

    /// Rules of one chain as arptables commands have them, one a line.
    pub fn arp_rules(&mut self) -> Vec<String> {
        let mut rules = Vec::new();
        for _ in 0..3 + self.rng.usize(..7) {
            let mut tests: Vec<String> = vec![
                format!("-s {}", self.net()),
                format!("-d {}", self.net()),
                format!("--src-mac {}", self.masked_mac()),
                format!("--dst-mac {}", self.masked_mac()),
                format!("--opcode {}", self.pick(&["1", "2", "1/255", "9"])),
                format!("--h-type {}", self.pick(&["1", "6"])),
                format!("--proto-type {}", self.pick(&["0x800", "0x806", "0x800/0xff0f"])),
                format!("-i {}", self.pick(&["r0", "r+", "eth1"])),
            ];
            self.rng.shuffle(&mut tests);
            tests.truncate(self.rng.usize(..4));
            let mut rule = String::new();
            for test in tests {
                let _ = write!(rule, " {}{test}", self.bang());
            }
            let verdict = match self.rng.u8(..8) {
                0 | 7 => " -j DROP".to_owned(),
                1 => " -j ACCEPT".to_owned(),
                2 => {
                    let field = self.pick(&["ip-s", "ip-d"]);
                    let addr = v4_text(self.pick(&V4));
                    format!(" -j mangle --mangle-{field} {addr} --mangle-target CONTINUE")
                }
                3 => {
                    let (field, mac) = (self.pick(&["mac-s", "mac-d"]), mac_text(self.pick(&MACS)));
                    format!(" -j mangle --mangle-{field} {mac} --mangle-target CONTINUE")
                }
                _ => String::new(),
            };
            rules.push(format!("{rule}{verdict}").trim_start().to_owned());
        }
        rules
    }
}
