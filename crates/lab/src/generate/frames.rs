//! Draws bridge rules and Ethernet frames, and ARP rules and ARP packets, from small pools so that they meet.

use std::fmt::Write;

use fastrand::Rng;

/// Rules under construction: a source of choices.
#[derive(Debug)]
pub struct Frames {
    /// The choices.
    pub rng: Rng,
}

const MACS: [[u8; 6]; 5] = [
    [2, 0, 0, 0, 0, 1],
    [2, 0, 0, 0, 0, 2],
    [2, 0, 0, 1, 0, 3],
    [2, 0, 0, 1, 0, 4],
    [2, 1, 0, 1, 0, 5],
];
const GROUPS: [[u8; 6]; 3] = [[0xff; 6], [1, 0, 0x5e, 0, 0, 1], [1, 0x80, 0xc2, 0, 0, 0x20]];
const V4: [[u8; 4]; 4] = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 1, 1], [192, 0, 2, 7]];
const PORTS: [u16; 6] = [0, 22, 53, 80, 443, 65535];

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn v4_text([a, b, c, d]: [u8; 4]) -> String {
    format!("{a}.{b}.{c}.{d}")
}

impl Frames {
    /// Choices from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed) }
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.rng.usize(..list.len())]
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(..n) == 0
    }

    fn bang(&mut self) -> &'static str {
        if self.one_in(4) { "! " } else { "" }
    }

    fn mac(&mut self) -> [u8; 6] {
        if self.one_in(5) { self.pick(&GROUPS) } else { self.pick(&MACS) }
    }

    fn v6(&mut self) -> [u8; 16] {
        let last = self.pick(&[1, 2, 0x11]);
        [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, self.pick(&[0, 1]), last]
    }

    fn masked_mac(&mut self) -> String {
        let mac = mac_text(self.mac());
        match self.rng.u8(..4) {
            0 => format!("{mac}/ff:ff:ff:ff:00:00"),
            1 => format!("{mac}/01:00:00:00:00:00"),
            _ => mac,
        }
    }

    fn net(&mut self) -> String {
        let addr = v4_text(self.pick(&V4));
        match self.rng.u8(..4) {
            0 => format!("{addr}/24"),
            1 => format!("{addr}/255.0.0.255"),
            _ => addr,
        }
    }

    fn range(&mut self, pool: &[u16]) -> String {
        let (a, b) = (self.pick(pool), self.pick(pool));
        if self.one_in(2) { a.to_string() } else { format!("{}:{}", a.min(b), a.max(b)) }
    }

    // Bridge rules.

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

    // Frames.

    /// A frame that a bridge forwards.
    pub fn frame(&mut self) -> Vec<u8> {
        let destination = self.mac();
        let mut frame = [destination, self.pick(&MACS)].concat();
        if self.one_in(5) {
            let id = self.pick(&[0_u16, 1, 5, 100]);
            let tci = id | u16::from(self.pick(&[0_u8, 3])) << 13;
            frame.extend([0x81, 0]);
            frame.extend(tci.to_be_bytes());
        }
        let (kind, mut body) = match self.rng.u8(..8) {
            0 | 1 => (0x0800, self.ip_body()),
            2 | 3 => (0x86dd, self.ip6_body()),
            4 => (0x0806, self.arp_body()),
            5 => (0x8035, self.arp_body()),
            6 => (0, self.llc_body()),
            _ => (self.pick(&[0x88cc, 0x0600, 0x9000]), vec![0x61; self.rng.usize(..40)]),
        };
        if self.one_in(12) {
            body.truncate(self.rng.usize(..body.len() + 1));
        }
        if self.one_in(12) {
            body.extend([0; 9]);
        }
        // What is not bounded by the kernel's match must be there: it reads on.
        if kind == 0 && body.len() < 12 {
            body.resize(12, 0x33);
        }
        let kind = if kind == 0 { body.len() as u16 } else { kind };
        frame.extend(kind.to_be_bytes());
        frame.extend(body);
        // A tag must have something behind it, or the kernel drops the frame.
        frame.resize(frame.len().max(20), 0);
        frame
    }

    fn ip_body(&mut self) -> Vec<u8> {
        let protocol = self.pick(&[6, 17, 1, 2, 47, 132]);
        let words = if self.one_in(8) { 6 } else { 5 };
        let mut body =
            vec![0x40 + words, self.pick(&[0, 0x10]), 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        if self.one_in(8) {
            body[7] = 1;
        }
        body.extend(self.pick(&V4));
        body.extend(self.pick(&V4));
        body.resize(usize::from(words) * 4, 1);
        self.upper_body(protocol, &mut body);
        let len = body.len() as u16;
        body[2..4].copy_from_slice(&len.to_be_bytes());
        body
    }

    fn ip6_body(&mut self) -> Vec<u8> {
        let protocol = self.pick(&[6, 17, 58, 132, 59]);
        let mut chain = protocol;
        let mut extensions = Vec::new();
        for _ in 0..self.rng.usize(..3) {
            let kind = self.pick(&[0, 60, 43, 44, 51]);
            let mut header = vec![chain, 0, 0, 0, 0, 0, 0, 0];
            match kind {
                44 => header[3] = self.pick(&[0, 1, 8, 9]),
                51 => {
                    header[1] = 1;
                    header.extend([0; 4]);
                }
                _ => {}
            }
            extensions.splice(0..0, header);
            chain = kind;
        }
        let class = self.pick(&[0, 0x10_u8]);
        let mut body = vec![0x60 | class >> 4, class << 4, 0, 0, 0, 0, chain, 64];
        body.extend(self.v6());
        body.extend(self.v6());
        body.extend(extensions);
        self.upper_body(protocol, &mut body);
        let len = (body.len() - 40) as u16;
        body[4..6].copy_from_slice(&len.to_be_bytes());
        body
    }

    fn upper_body(&mut self, protocol: u8, body: &mut Vec<u8>) {
        match protocol {
            1 | 58 => body.extend([self.pick(&[0, 3, 8, 9, 128, 129]), self.pick(&[0, 1, 2])]),
            2 => body.extend([self.pick(&[0x11, 0x12, 0x16, 0x17]), 0]),
            _ => {
                body.extend(self.pick(&PORTS).to_be_bytes());
                body.extend(self.pick(&PORTS).to_be_bytes());
            }
        }
        body.resize(body.len() + self.pick(&[0_usize, 2, 6, 16]), 0);
    }

    fn arp_body(&mut self) -> Vec<u8> {
        let (hardware, kind) = (self.pick(&[1, 1, 1, 6]), self.pick(&[[8, 0], [8, 0], [8, 6]]));
        let lengths = self.pick(&[[6, 4], [6, 4], [6, 4], [8, 4], [6, 16]]);
        let mut body = vec![0, hardware];
        body.extend(kind);
        body.extend(lengths);
        body.extend([0, self.pick(&[1, 1, 2, 9, 77])]);
        let sender = self.pick(&V4);
        for addr in [sender, if self.one_in(3) { sender } else { self.pick(&V4) }] {
            body.extend(self.mac());
            body.extend(&[0; 2][..usize::from(lengths[0] - 6)]);
            body.extend(addr);
            body.extend(&[0; 12][..usize::from(lengths[1] - 4)]);
        }
        body
    }

    fn llc_body(&mut self) -> Vec<u8> {
        match self.rng.u8(..4) {
            0 => [&[0xaa, 0xaa, self.pick(&[3, 0]), 0, 0, 0][..], &[0x08, 0, 0x20, 0, 0x08, 0, 9]]
                .concat(),
            1 => vec![
                self.pick(&[0x42, 0xaa, 0x43]),
                self.pick(&[0x42, 0xaa]),
                3,
                0,
                0,
                0x20,
                0,
                1,
                2,
                3,
                4,
                5,
            ],
            _ => {
                let mut body = vec![0x42, 0x42, 3, 0, 0, 0, self.pick(&[0, 0, 0, 0x80, 2])];
                body.push(self.pick(&[0, 1, 3, 0x80]));
                let bridge = |frames: &mut Self| {
                    let mut id = frames.pick(&[[0, 1], [0x80, 0], [1, 0]]).to_vec();
                    id.extend(frames.pick(&MACS));
                    id
                };
                body.extend(bridge(self));
                body.extend([0, 0, self.pick(&[0, 1, 0x80]), self.pick(&[0, 1])]);
                body.extend(bridge(self));
                for _ in 0..5 {
                    body.extend(self.pick(&[[0, 0], [0, 1], [1, 0], [0x80, 0]]));
                }
                body
            }
        }
    }

    // ARP.

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

    /// An ARP packet that a host takes in.
    pub fn arp_frame(&mut self) -> Vec<u8> {
        let destination = if self.one_in(2) { [0xff; 6] } else { crate::scene::NEAR_MAC };
        let mut frame = [destination, self.pick(&MACS)].concat();
        frame.extend([0x08, 0x06]);
        loop {
            let body = self.arp_body();
            // Others never get to the rules.
            if body[4..6] == [6, 4] {
                frame.extend(body);
                break;
            }
        }
        frame.extend(&[0; 18][..if self.one_in(3) { 18 } else { 0 }]);
        frame
    }
}
