//! `-j CLUSTERIP`: takes the packet if this node of a cluster is the one to answer it, which depends on its
//! connection. Kernels before 6.6 had it; the `cluster` match followed.
//!
//! Source: iptables-extensions(8); `linux/netfilter_ipv4/ipt_CLUSTERIP.h`.

use crate::error::What;
use crate::ext::{Args, Opt, Printer, Support, Target, TargetKind, V4};
use crate::family::Hook;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "CLUSTERIP",
    families: V4,
    options: &[
        Opt::flag("new"),
        Opt::value("hashmode"),
        Opt::value("clustermac"),
        Opt::value("total-nodes"),
        Opt::value("local-node"),
        Opt::value("hash-init"),
    ],
    support: Support::Parsed,
    parse,
};

const MODES: [&str; 3] = ["sourceip", "sourceip-sourceport", "sourceip-sourceport-destport"];
const MAX_NODES: u64 = 16;

/// The options of a new cluster; `None` for a rule that joins one made by another.
#[derive(Debug)]
struct Clusterip(Option<Cluster>);

#[derive(Debug)]
struct Cluster {
    mode: &'static str,
    mac: [u8; 6],
    nodes: u8,
    local: u8,
    hash_init: u32,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_hook(&[Hook::Input])?;
    if args.given.is_empty() {
        return Ok(Box::new(Clusterip(None)));
    }
    args.required("new")?;
    let cluster = Cluster {
        mode: mode(args)?,
        mac: mac(args)?,
        nodes: nodes(args, "total-nodes")?,
        local: nodes(args, "local-node")?,
        hash_init: match args.get("hash-init") {
            Some(given) => {
                value::u32(given.text()).ok_or_else(|| given.expected("a value of 32 bits"))?
            }
            None => 0,
        },
    };
    Ok(Box::new(Clusterip(Some(cluster))))
}

fn mode(args: &Args<'_>) -> Result<&'static str, What> {
    let given = args.required("hashmode")?;
    let mode = MODES.into_iter().find(|mode| *mode == given.text());
    mode.ok_or_else(|| given.expected(format!("one of {}", MODES.join(" "))))
}

fn mac(args: &Args<'_>) -> Result<[u8; 6], What> {
    let given = args.required("clustermac")?;
    value::mac(given.text())
        .filter(|mac| mac[0] & 1 != 0)
        .ok_or_else(|| given.expected("a multicast MAC address"))
}

fn nodes(args: &Args<'_>, name: &str) -> Result<u8, What> {
    let given = args.required(name)?;
    value::number(given.text(), MAX_NODES)
        .map(|number| number as u8)
        .ok_or_else(|| given.expected(format!("a number 0-{MAX_NODES}")))
}

impl Target for Clusterip {
    fn print(&self, to: &mut Printer) {
        let Some(cluster) = &self.0 else { return };
        to.flag(false, "new")
            .option(false, "hashmode", cluster.mode)
            .option(false, "clustermac", value::mac_text(cluster.mac).to_ascii_uppercase())
            .option(false, "total-nodes", cluster.nodes)
            .option(false, "local-node", cluster.local)
            .option(false, "hash-init", cluster.hash_init);
    }
}
