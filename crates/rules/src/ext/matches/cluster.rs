//! `-m cluster`: the packet's connection is this node's share of a cluster's load.
//!
//! The original source of the connection is hashed as a little-endian kernel does. Of a connection that a helper expected
//! that of its master counts, which is not kept: it is open. So is what the match does to `pkttype`, which none is here.
//!
//! Nodes are kept as a mask of node numbers, and print so. Source: iptables-extensions(8); Linux 6.18
//! `net/netfilter/xt_cluster.c`.

use std::net::IpAddr;

use conntrack::{Direction, Status};

use crate::connection::KnownFlow;
use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::nat::jhash::jhash2;
use crate::outcome::Outcome;
use crate::transit::Transit;

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
    support: Support::Evaluated,
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

impl Cluster {
    /// The node that a connection from there belongs to, from 0. Of an IPv6 address the kernel hashes the first word.
    fn node(&self, source: IpAddr) -> u32 {
        let word = match source {
            IpAddr::V4(v4) => v4.octets(),
            IpAddr::V6(v6) => *v6.octets().first_chunk().unwrap_or(&[0; 4]),
        };
        let hash = jhash2(&[u32::from_le_bytes(word)], self.seed);
        ((u64::from(hash) * u64::from(self.nodes)) >> 32) as u32
    }
}

impl Match for Cluster {
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.ct.flow() {
            // Inverted or not.
            KnownFlow::None => Outcome::NO,
            KnownFlow::Flow(flow) if !flow.status().contains(Status::EXPECTED) => {
                let node = self.node(flow.tuple(Direction::Original).source());
                Outcome::from_bool((self.mask >> node & 1 == 1) != self.invert)
            }
            KnownFlow::Flow(_) | KnownFlow::Unknown => Outcome::MAYBE,
        }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("the connection, or the one that a helper expected it by, is not known")
    }

    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "cluster-local-nodemask", format_args!("{:#010x}", self.mask));
        to.option(false, "cluster-total-nodes", self.nodes);
        to.option(false, "cluster-hash-seed", format_args!("{:#010x}", self.seed));
    }

    fn tracks(&self) -> bool {
        true
    }
}
