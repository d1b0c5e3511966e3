//! `-j TPROXY`: gives the packet to a local socket that was not its destination, and marks it, so that routes lead it
//! there. Where there is no such socket that is transparent, the packet is dropped; whether there is one is not known. So
//! of a packet that goes on the mark is known.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_TPROXY.c`.

use crate::error::What;
use crate::ext::{Args, Course, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::{Hook, TableKind};
use crate::transit::Transit;
use crate::value;
use packet::{L4, Mark, Read};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "TPROXY",
    families: IP,
    options: &[Opt::value("on-port"), Opt::value("on-ip"), Opt::value("tproxy-mark")],
    support: Support::Parsed,
    parse,
};

/// Bytes of a header that hold its ports, and must be there.
const PORTS_LEN: usize = 8;

#[derive(Debug)]
struct Tproxy {
    port: u16,
    addr: [u8; 16],
    addr_len: usize,
    mark: u32,
    mask: u32,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE])?;
    args.needs_hook(&[Hook::Prerouting])?;
    args.needs_protocol(&[6, 17])?;
    let addr_len = args.family.addr_len();
    let port = args.required("on-port")?;
    let port = value::port(port.text()).ok_or_else(|| port.expected("a port 0-65535"))?;
    let addr = match args.get("on-ip") {
        Some(given) => {
            value::address(given.text(), addr_len).ok_or_else(|| given.expected("an address"))?
        }
        None => [0; 16],
    };
    let (mark, mask) = match args.get("tproxy-mark") {
        Some(given) => value::masked_u32(given.text())
            .ok_or_else(|| given.expected("value or value/mask of 32 bits"))?,
        None => (0, 0),
    };
    Ok(Box::new(Tproxy { port, addr, addr_len, mark, mask }))
}

impl Target for Tproxy {
    fn print(&self, to: &mut Printer) {
        to.option(false, "on-port", self.port)
            .option(false, "on-ip", value::address_text(&self.addr, self.addr_len))
            .option(false, "tproxy-mark", format_args!("{:#x}/{:#x}", self.mark, self.mask));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        if let L4::Upper(upper) = transit.packet.headers().l4
            && transit.packet.read_slice(upper.offset, PORTS_LEN) == Read::Absent
        {
            return Effect::Drop;
        }
        let unknown = transit.mark.unknown & !self.mask;
        let value = ((transit.mark.value & !self.mask) ^ self.mark) & !unknown;
        transit.set_mark(Mark { value, unknown });
        Effect::Either
    }

    fn course(&self) -> Course {
        Course::Ends(Effect::Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, read_in};
    use crate::model::Action;
    use host::Host;
    use packet::{Checksums, Link, Packet};

    /// What the rule does, and the mark of a packet that had 0x55.
    fn applied(options: &str, bytes: &[u8]) -> (Effect, Mark) {
        let mut bytes = bytes.to_vec();
        let family = Frame::ip(&bytes).family;
        let rule = format!("-p udp -j TPROXY --on-port 80 {options}");
        let ruleset = read_in(family, "mangle", "PREROUTING", &rule).unwrap();
        let Action::Target(target) = &ruleset.tables[0].chains[0].rules[0].action else {
            panic!("{rule} has no target");
        };
        let (len, host) = (bytes.len(), Host::default());
        let mut packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
        let mut transit = Transit::new(&mut packet, family, Hook::Prerouting, &host);
        transit.mark = Mark { value: 0x55, unknown: 0 };
        (target.body.apply(&mut transit), transit.mark)
    }

    #[test]
    fn what_is_not_dropped_is_marked() {
        let udp = ipv4(17, &[4, 0, 0, 53, 0, 8, 0, 0]);
        let known = |value| Mark { value, unknown: 0 };
        assert_eq!(applied("", &udp), (Effect::Either, known(0x55)));
        assert_eq!(applied("--tproxy-mark 1/0xf", &udp), (Effect::Either, known(0x51)));
        assert_eq!(applied("--tproxy-mark 0x11/0", &udp), (Effect::Either, known(0x44)));
        assert_eq!(applied("", &ipv4(17, &udp[20..27])).0, Effect::Drop);
    }
}
