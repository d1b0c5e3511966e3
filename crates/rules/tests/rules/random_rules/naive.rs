//! The walk as one would write it on a napkin: two answers, recursion, nothing unknown. It reads the rules
//! and packets of `made`, and shares no code with the crate.
//!
//! Source: kernel `ipt_do_table`, `tcp_mt` and `udp_mt` in `net/netfilter/xt_tcpudp.c`.

use super::made::{Action, Net, Packet, Ports, Rule, Table};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Accept,
    Drop,
}

enum Answer {
    No,
    Yes,
    HotDrop,
}

/// One packet's walk.
pub(crate) struct Walk<'t, 'a> {
    pub(crate) table: &'t Table,
    pub(crate) packet: Packet,
    /// What the match of which nothing is known says, each time it is asked.
    pub(crate) opaque: &'a mut dyn FnMut() -> bool,
    /// Packets of each rule, by chain.
    pub(crate) hits: Vec<Vec<u64>>,
    pub(crate) policy_hits: u64,
}

impl<'t, 'a> Walk<'t, 'a> {
    pub(crate) fn new(
        table: &'t Table,
        packet: Packet,
        opaque: &'a mut dyn FnMut() -> bool,
    ) -> Self {
        let hits = table.chains.iter().map(|chain| vec![0; chain.len()]).collect();
        Self { table, packet, opaque, hits, policy_hits: 0 }
    }

    pub(crate) fn run(&mut self) -> End {
        self.chain(0).unwrap_or_else(|| {
            self.policy_hits += 1;
            if self.table.drops { End::Drop } else { End::Accept }
        })
    }

    fn chain(&mut self, index: usize) -> Option<End> {
        for (number, rule) in self.table.chains[index].iter().enumerate() {
            match self.evaluate(rule) {
                Answer::No => continue,
                Answer::HotDrop => return Some(End::Drop),
                Answer::Yes => self.hits[index][number] += 1,
            }
            match rule.action {
                Action::None | Action::Log => {}
                Action::Accept => return Some(End::Accept),
                Action::Drop => return Some(End::Drop),
                Action::Return => return None,
                Action::Mark(value, mask) => {
                    self.packet.mark = (self.packet.mark & !mask) ^ value;
                }
                Action::Jump(to) => {
                    if let Some(end) = self.chain(to) {
                        return Some(end);
                    }
                }
                Action::Goto(to) => return self.chain(to),
            }
        }
        None
    }

    fn evaluate(&mut self, rule: &Rule) -> Answer {
        let packet = &self.packet;
        let header = is(rule.source, |net| holds(net, packet, 12))
            && is(rule.destination, |net| holds(net, packet, 16))
            && is(rule.input, |name| named(name, packet.input))
            && is(rule.output, |name| named(name, packet.output))
            && is(rule.protocol, |protocol| packet.bytes[9] == protocol)
            && rule.fragment.is_none_or(|invert| (fragment(packet) != 0) != invert);
        if !header {
            return Answer::No;
        }
        match rule.ports.map(|ports| evaluate_ports(ports, packet)) {
            Some(Answer::Yes) | None => {}
            Some(other) => return other,
        }
        let mark = is(rule.mark, |(value, mask)| packet.mark & mask == value);
        if mark && (!rule.opaque || (self.opaque)()) { Answer::Yes } else { Answer::No }
    }
}

fn is<T>(test: Option<(bool, T)>, same: impl FnOnce(T) -> bool) -> bool {
    test.is_none_or(|(invert, value)| same(value) != invert)
}

fn holds(net: Net, packet: &Packet, at: usize) -> bool {
    let addr = u32::from_be_bytes(packet.bytes[at..at + 4].try_into().unwrap());
    addr & (u32::MAX << (32 - net.bits)) == net.addr
}

fn named(test: &str, name: &str) -> bool {
    match test.strip_suffix('+') {
        Some(prefix) => name.starts_with(prefix),
        None => test == name,
    }
}

fn fragment(packet: &Packet) -> u16 {
    u16::from_be_bytes([packet.bytes[6], packet.bytes[7]]) & 0x1fff
}

fn evaluate_ports(ports: Ports, packet: &Packet) -> Answer {
    let tcp = packet.bytes[9] == 6;
    match fragment(packet) {
        0 => {}
        1 if tcp => return Answer::HotDrop,
        _ => return Answer::No,
    }
    if packet.bytes.len() < 20 + if tcp { 20 } else { 8 } {
        return Answer::HotDrop;
    }
    let at = if ports.destination { 22 } else { 20 };
    let port = u16::from_be_bytes([packet.bytes[at], packet.bytes[at + 1]]);
    let same = (ports.low..=ports.high).contains(&port);
    if same != ports.invert { Answer::Yes } else { Answer::No }
}
