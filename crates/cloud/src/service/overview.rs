//! The answer to a question for an [`Overview`].

use std::cmp::Reverse;
use std::collections::HashMap;

use anyhow::Result;
use overlay::{
    Listed, Now, Pair, Ports, Relay, RelayState, Router, Strangers, Way, limits::SECOND,
};

use super::Service;
use crate::overview::{LINES, MOST, Node, Overview, Path, State};
use crate::peers::time;
use crate::store::Store;

impl<S: Store> Service<S> {
    /// What is known now.
    pub(super) fn overview(&self, now: Now) -> Result<Overview> {
        let (mut relayed, mut servers) =
            (self.relay.as_ref().map_or((0, 0), Relay::counts), Vec::new());
        for RelayState { at, is_there, counts } in self.directory.relays(now.nanos) {
            relayed = (relayed.0 + counts.0, relayed.1 + counts.1);
            servers.push((format!("The relay {at}"), is_there));
        }
        if self.authority.is_none() {
            let is_there = self.directory.has_authority().unwrap_or(true);
            servers.push(("The authority".to_owned(), is_there));
        }
        let kept = self.policy.to_keep();
        let mut overview = Overview {
            domain: self.directory.network().domain.clone(),
            time: time(now.unix),
            policy_version: kept.version,
            policy: kept.text,
            log: self.store.lines(LINES)?,
            relayed,
            servers,
            ..Overview::default()
        };
        for listed in self.directory.list(now.nanos) {
            overview.node_count += 1;
            overview.present_count += usize::from(listed.present && !listed.device.revoked);
            if overview.nodes.len() < MOST {
                overview.nodes.push(node(&listed));
            }
        }
        self.show_paths(&mut overview, now);
        Ok(overview)
    }

    fn show_paths(&self, overview: &mut Overview, now: Now) {
        let forwarded = self.relay.iter().flat_map(Relay::paths);
        let forwarded: HashMap<Pair, (u64, u64)> =
            forwarded.map(|path| (path.pair, (path.datagrams, path.bytes))).collect();
        let mut paths = Vec::new();
        for Way { pair, said, asked } in self.directory.ways(now.nanos) {
            let is_direct = said.iter().flatten().all(|(is_direct, _)| *is_direct);
            match said.iter().any(Option::is_some) {
                true if is_direct => overview.direct_count += 1,
                true => overview.relay_count += 1,
                false => {}
            }
            let relayed = forwarded.get(&pair).copied();
            paths.push((pair, said, relayed, asked));
        }
        overview.path_count = paths.len();
        paths.sort_by_key(|(.., relayed, _)| Reverse(relayed.map(|(_, bytes)| bytes)));
        paths.truncate(MOST);
        paths.sort_by(|one, other| one.0.cmp(&other.0));
        let path = |(pair, said, relayed, asked): (Pair, _, _, Option<u64>)| {
            let nodes = [pair.0.to_string(), pair.1.to_string()];
            Path { nodes, said, relayed, asked: asked.map(|nanos| nanos / SECOND) }
        };
        overview.paths = paths.into_iter().map(path).collect();
    }
}

fn node(listed: &Listed<'_>) -> Node {
    let state = match (listed.device.revoked, listed.present) {
        (true, _) => State::Revoked,
        (false, true) => State::Present,
        (false, false) => State::Absent,
    };
    Node {
        name: listed.device.name.to_string(),
        v4: listed.addresses.0.to_string(),
        v6: listed.addresses.1.to_string(),
        state,
        at: listed.at.map(|at| at.to_string()),
        router: router(listed.router),
    }
}

/// What a router does, in words.
fn router(router: Router) -> String {
    let ports = match router.ports {
        Ports::Unknown => return "not known".to_owned(),
        Ports::One => "one port for all destinations, or none there".to_owned(),
        Ports::Step(step) => format!("each destination another port: the last one and {step}"),
        Ports::Each => "each destination another port".to_owned(),
    };
    match router.strangers {
        Strangers::Taken => ports + "; takes what comes too early for its own",
        Strangers::Unknown | Strangers::Pass => ports,
    }
}
