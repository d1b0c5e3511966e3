//! `-m cluster`: the packet's connection is this node's share of a cluster's load.
//!
//! Nodes are kept as a mask of node numbers, and print so. Source: iptables-extensions(8); kernel
//! `net/netfilter/xt_cluster.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};

const MAX_NODES: u64 = 32;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "cluster",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("cluster-total-nodes"),
        Opt::value("cluster-local-node").invertible(),
        Opt::value("cluster-local-nodemask").invertible(),
        Opt::value("cluster-hash-seed"),
    ],
    support: Support::Parsed,
    parse,
};

#[derive(Debug)]
struct Cluster {
    nodes: u8,
    mask: u32,
    invert: bool,
    seed: u32,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let local = ["cluster-local-node", "cluster-local-nodemask"];
    args.any_of(&local)?;
    args.one_of(&local)?;
    let nodes = number::between(args.required("cluster-total-nodes")?, 1, MAX_NODES)?;
    let all = (1_u64 << nodes) - 1;
    let given = args.get(local[0]).map_or_else(|| args.required(local[1]), Ok)?;
    let mask = match given.name {
        "cluster-local-node" => 1 << (number::between(given, 1, nodes)? - 1),
        _ => number::between(given, 1, all)? as u32,
    };
    let seed = number::u32(args.required("cluster-hash-seed")?)?;
    Ok(Box::new(Cluster { nodes: nodes as u8, mask, invert: given.invert, seed }))
}

impl Match for Cluster {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "cluster-local-nodemask", format_args!("{:#010x}", self.mask));
        to.option(false, "cluster-total-nodes", self.nodes);
        to.option(false, "cluster-hash-seed", format_args!("{:#010x}", self.seed));
    }

    fn tracks(&self) -> bool {
        true
    }
}
