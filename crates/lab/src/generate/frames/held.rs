//! Rules for the packets that a bridge's frames hold: what they share with the bridge's own rules is the mark, the
//! bytes and the link header.

use std::fmt::Write;

use super::{Frames, mac_text};

/// Tables, and the hooks of each that a packet comes to which is passed on.
const TABLES: [(&str, &[&str]); 3] = [
    ("raw", &["PREROUTING"]),
    ("mangle", &["PREROUTING", "FORWARD", "POSTROUTING"]),
    ("filter", &["FORWARD"]),
];

impl Frames {
    /// iptables-save or ip6tables-save text for packets of [`Frames::frame`].
    pub fn held_rules(&mut self, is_ipv6: bool) -> String {
        let mut text = String::new();
        for (table, chains) in TABLES {
            let _ = writeln!(text, "*{table}");
            for chain in chains {
                let policy = if table == "filter" && self.one_in(3) { "DROP" } else { "ACCEPT" };
                let _ = writeln!(text, ":{chain} {policy} [0:0]");
            }
            for chain in chains {
                for _ in 0..1 + self.rng.usize(..4) {
                    let rule = self.held_rule(table, chain, is_ipv6);
                    let _ = writeln!(text, "-A {chain}{rule}");
                }
            }
            let _ = writeln!(text, "COMMIT");
        }
        text
    }

    fn held_rule(&mut self, table: &str, chain: &str, is_ipv6: bool) -> String {
        let mut rule = String::new();
        for option in ["-s", "-d"] {
            if self.one_in(3) {
                let bang = self.bang();
                let net = if is_ipv6 {
                    let address = std::net::Ipv6Addr::from(self.v6());
                    format!("{address}/{}", self.pick(&[64, 128]))
                } else {
                    self.net()
                };
                let _ = write!(rule, " {bang}{option} {net}");
            }
        }
        if self.one_in(2) {
            let mark = self.pick(&["0x1/0x1", "0x2/0x2", "0x4/0x4", "0x0/0x7", "0x5"]);
            let _ = write!(rule, " -m mark {}--mark {mark}", self.bang());
        }
        if chain != "POSTROUTING" && self.one_in(6) {
            let mac = mac_text(self.mac());
            let _ = write!(rule, " -m mac {}--mac-source {mac}", self.bang());
        }
        if self.one_in(6) {
            let kind = self.pick(&["broadcast", "multicast"]);
            let _ = write!(rule, " -m pkttype {}--pkt-type {kind}", self.bang());
        }
        if self.one_in(6) {
            let _ = write!(rule, " -m tos {}--tos 0x10/0xff", self.bang());
        }
        let target = match self.rng.u8(..6) {
            0 | 1 if table == "mangle" => {
                let action = self.pick(&["set", "or", "and", "xor"]);
                format!(" -j MARK --{action}-mark {:#x}", self.rng.u32(..8))
            }
            2 if table == "mangle" => format!(" -j TOS --set-tos {}", self.pick(&["0x10", "0x0"])),
            0 if chain != "POSTROUTING" => " -j DROP".to_owned(),
            3 => " -j ACCEPT".to_owned(),
            _ => String::new(),
        };
        rule + &target
    }
}
