//! `-j TPROXY`: gives the packet to a local socket that was not its destination. Whether there is such a
//! socket is unknown, so the verdict on the packet is.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_TPROXY.c`.

use crate::error::What;
use crate::ext::{Args, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::{Hook, TableKind};
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "TPROXY",
    families: IP,
    options: &[Opt::value("on-port"), Opt::value("on-ip"), Opt::value("tproxy-mark")],
    support: Support::Parsed,
    parse,
};

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
}
