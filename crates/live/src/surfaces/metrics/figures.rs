//! [`Figures`]: the contents of a page of metrics, family by family.
//!
//! Contract: as of one moment, as far as workers have written it down; no counter goes down while tamis runs. All
//! families are always there, the families of rules only where they are asked for: [`MOST_RULES`] rules at most, in
//! their order.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeMetric,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use rules::model::Counters;

use super::process::Held;
use crate::answers::{Peer, PortState, WorkerState};
use crate::api::parts::Parts;
use crate::api::status::Status;
use crate::forward::account::{Accounted, Reason};
use crate::workers::connections::ByState;
use crate::workers::status::Direction;
use dataplane::publish::Snapshot;

/// Rules whose counters a page has, at most.
const MOST_RULES: usize = 10_000;

/// The figures of a page.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) status: Status,
    /// The most connections that there may be.
    pub(super) most_connections: usize,
    /// The number of connections, by protocol and state; without the connections of a worker that does not answer.
    pub(super) connections: ByState,
    /// Memory and threads of the process, where the system says.
    pub(super) held: Option<Held>,
    /// Peers of tunnels.
    pub(super) peers: Vec<Peer>,
    /// Counters of rules and policies, where they are asked for.
    pub(super) counters: Option<OfRules>,
}

/// Counters of rules and policies, each with labels that name the rule or policy.
#[derive(Debug, Default)]
pub(super) struct OfRules {
    pub(super) rules: Vec<(Labels, Counters)>,
    pub(super) policies: Vec<(Labels, Counters)>,
    /// Rules that there was no room for.
    pub(super) left_out: usize,
}

type Labels = Vec<(&'static str, String)>;

impl Figures {
    pub(super) fn of(parts: &Parts, snapshot: Option<Snapshot>, held: Option<Held>) -> Self {
        let program = parts.rules.published().program();
        Self {
            status: parts.status(),
            most_connections: program.config().ct.max,
            connections: parts.workers.connections_by_state().unwrap_or_default(),
            held,
            peers: parts.devices.peers(),
            counters: snapshot.as_ref().map(OfRules::of),
        }
    }

    /// Formats the page.
    ///
    /// # Errors
    /// None that memory has room for.
    pub(super) fn text(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("tamis");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }

    fn of_run(&self, page: &mut Page<'_>) -> fmt::Result {
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        page.gauge("build", None, "Which tamis this is: always 1.", [(version, 1)])?;
        let uptime = self.status.uptime.as_secs_f64();
        page.gauge("uptime", Some(Unit::Seconds), "How long it has run.", [(none(), uptime)])?;
        let program = self.status.program as i64;
        let what =
            "Number of the program in force, which every change raises, from 1 at each start.";
        page.gauge("program", None, what, [(none(), program)])?;
        let revision = self.status.revision.map(|revision| (none(), revision.number as i64));
        let what = "Number of the revision in force, which goes on over restarts.";
        page.gauge("revision", None, what, revision)?;
        let panicked = i64::from(self.status.panicked);
        let what = "Whether a worker has panicked, so that no rule sees a frame any more.";
        page.gauge("panicked", None, what, [(none(), panicked)])
    }

    fn of_process(&self, page: &mut Page<'_>) -> fmt::Result {
        let held = self.held.iter();
        let resident = held.flat_map(|held| {
            let kinds = [("anonymous", held.anonymous), ("files", held.files)];
            kinds.map(|(kind, bytes)| (one("kind", kind), bytes as i64))
        });
        let what =
            "Memory of the process that is not on disk: its heap and stacks, and pages of files.";
        page.gauge("resident", Some(Unit::Bytes), what, resident)?;
        let threads = self.held.map(|held| (none(), held.threads as i64));
        page.gauge("threads", None, "Threads of the process.", threads)
    }

    fn of_frames(&self, page: &mut Page<'_>) -> fmt::Result {
        let each = |get: fn(&Accounted) -> u64| {
            let counts = self.status.directions.iter();
            counts.map(move |direction| (way(direction), get(&direction.frames)))
        };
        let what = "Frames that came in by a port.";
        page.counter("received_frames", None, what, each(|frames| frames.received))?;
        let what = "Bytes of the frames that came in by a port.";
        page.counter("received", Some(Unit::Bytes), what, each(|frames| frames.received_bytes))?;
        let what =
            "Frames that the port to leave by took, and replies that the port of arrival took.";
        page.counter("sent_frames", None, what, each(|frames| frames.sent))?;
        let what = "Bytes of the frames that were sent.";
        page.counter("sent", Some(Unit::Bytes), what, each(|frames| frames.sent_bytes))?;
        let what = "Frames that were made here: replies to rejected packets, and fragments.";
        page.counter("made_frames", None, what, each(|frames| frames.made))?;
        let what = "Frames that moved to the worker that has their connection.";
        page.counter("handed_over_frames", None, what, each(|frames| frames.taken_over))?;
        let what = "Frames that were sent after a panic, which no rule saw.";
        page.counter("unevaluated_frames", None, what, each(|frames| frames.unevaluated))?;
        let dropped = self.status.directions.iter().flat_map(|direction| {
            Reason::ALL.into_iter().map(|reason| {
                (and(way(direction), "reason", reason.name()), direction.frames.of(reason))
            })
        });
        page.counter("dropped_frames", None, "Frames that did not leave, by reason.", dropped)?;
        let verdicts = self.status.directions.iter().flat_map(|direction| {
            direction
                .frames
                .verdicts()
                .map(|(verdict, frames)| (and(way(direction), "verdict", verdict), frames))
        });
        page.counter("verdicts", None, "Frames that were evaluated, by verdict.", verdicts)?;
        let causes = self.status.unknown_because.iter();
        let causes = causes.map(|(cause, frames)| (one("because", cause), *frames));
        let what = "Unknown verdicts, by what they depended on.";
        page.counter("unknown_verdicts", None, what, causes)
    }

    fn of_queues(&self, page: &mut Page<'_>) -> fmt::Result {
        let queues = || {
            let all = self.status.directions.iter();
            all.filter_map(|direction| Some((way(direction), direction.queue?)))
        };
        let bursts = queues().map(|(way, queue)| (way, queue.bursts as i64));
        let what = "Bursts of an ordered wire between receiving and sending.";
        page.gauge("queue_bursts", None, what, bursts)?;
        let held = queues().map(|(way, queue)| (way, queue.held as i64));
        let what = "Of those, bursts that are evaluated and wait for one before them.";
        page.gauge("queue_held_bursts", None, what, held)?;
        let room = queues().map(|(way, queue)| (way, queue.room as i64));
        page.gauge("queue_room_bursts", None, "Bursts that there is room for.", room)?;
        let released = queues().map(|(way, queue)| (way, queue.released));
        page.counter("queue_released_bursts", None, "Bursts that were sent.", released)?;
        let stayed = queues().map(|(way, queue)| (way, queue.stayed_seconds));
        let what = "Time from receiving to sending of those, all together.";
        page.counter("queue_stayed", Some(Unit::Seconds), what, stayed)?;
        let overdue = queues().map(|(way, queue)| (way, queue.overdue));
        let what = "Bursts that were given up: a worker took too long.";
        page.counter("queue_overdue_parts", None, what, overdue)
    }

    fn of_workers(&self, page: &mut Page<'_>) -> fmt::Result {
        let workers = || {
            let all = self.status.workers.iter().enumerate();
            all.map(|(number, worker)| (one("worker", &number.to_string()), worker))
        };
        let awake = workers().map(|(of, worker)| (of, worker.awake_seconds));
        let what = "Time that a worker has been awake; its rate is how busy the worker is.";
        page.counter("worker_awake", Some(Unit::Seconds), what, awake)?;
        let turns = workers().map(|(of, worker)| (of, worker.turns));
        page.counter("worker_turns", None, "Turns that a worker has taken.", turns)?;
        let states = workers().flat_map(|(of, worker)| {
            WorkerState::ALL.into_iter().map(move |state| {
                (and(of.clone(), "state", state.name()), i64::from(worker.state == state))
            })
        });
        page.gauge("worker_state", None, "1 for what a worker does.", states)?;
        let waiting = workers().map(|(of, worker)| (of, worker.waiting as i64));
        let what = "Frames in the rings to a worker, when it looked last.";
        page.gauge("worker_waiting_frames", None, what, waiting)?;
        let connections = workers().map(|(of, worker)| (of, worker.connections as i64));
        let what = "Connections that a worker holds, those that ended lately included.";
        page.gauge("connections", None, what, connections)?;
        let states = self.connections.iter().map(|((protocol, state), count)| {
            (and(one("protocol", protocol), "state", state), *count as i64)
        });
        let what = "Connections by the state that the kernel's lists would show.";
        page.gauge("connections_by_state", None, what, states)?;
        let most = self.most_connections as i64;
        let what = "Connections that there may be, of all workers.";
        page.gauge("connections_room", None, what, [(none(), most)])
    }

    fn of_ports(&self, page: &mut Page<'_>) -> fmt::Result {
        let ports = || self.status.ports.iter().map(|port| (one("port", &port.port), port));
        let lost = ports().map(|(of, port)| (of, port.lost));
        let what = "Frames that came to a device and were lost before a worker had them.";
        page.counter("port_lost_frames", None, what, lost)?;
        let states = ports().flat_map(|(of, port)| {
            PortState::ALL.into_iter().map(move |state| {
                (and(of.clone(), "state", state.name()), i64::from(port.state == state))
            })
        });
        page.gauge("port_state", None, "1 for how a device is.", states)
    }
}

impl Figures {
    fn of_peers(&self, page: &mut Page<'_>) -> fmt::Result {
        fn each<V>(
            peers: &[Peer],
            get: impl Fn(&Peer) -> Option<V>,
        ) -> impl Iterator<Item = (Labels, V)> {
            let of =
                |peer: &Peer| vec![("tunnel", peer.tunnel.clone()), ("peer", peer.name.clone())];
            peers.iter().filter_map(move |peer| Some((of(peer), get(peer)?)))
        }
        let peers = &self.peers;
        let sent = each(peers, |peer| Some(peer.sent_packets));
        page.counter("peer_sent_packets", None, "Packets that were sealed for a peer.", sent)?;
        let sent = each(peers, |peer| Some(peer.sent_bytes));
        page.counter("peer_sent", Some(Unit::Bytes), "Bytes of those packets.", sent)?;
        let received = each(peers, |peer| Some(peer.received_packets));
        let what = "Packets of a peer that were opened.";
        page.counter("peer_received_packets", None, what, received)?;
        let received = each(peers, |peer| Some(peer.received_bytes));
        page.counter("peer_received", Some(Unit::Bytes), "Bytes of those packets.", received)?;
        let lost = each(peers, |peer| Some(peer.lost as i64));
        let what = "Datagrams of a peer that are missing; those that come late are not any more.";
        page.gauge("peer_lost_datagrams", None, what, lost)?;
        let unsent = peers.iter().flat_map(|peer| {
            let of = vec![("tunnel", peer.tunnel.clone()), ("peer", peer.name.clone())];
            peer.unsent.iter().map(move |(why, count)| (and(of.clone(), "reason", why), *count))
        });
        let what = "Datagrams to a peer that the system did not send, by reason.";
        page.counter("peer_unsent_datagrams", None, what, unsent)?;
        let depth = each(peers, |peer| Some(peer.reorder_depth as i64));
        let what = "Datagrams of a peer that came before one that was sent before them, at most.";
        page.gauge("peer_reorder_depth", None, what, depth)?;
        let ages = each(peers, |peer| peer.handshake_s);
        let what = "Time since the session was made that a peer is sent to by.";
        page.gauge("peer_handshake_age", Some(Unit::Seconds), what, ages)?;
        let ages = each(peers, |peer| peer.heard_s);
        let what = "Time since a peer was heard.";
        page.gauge("peer_heard_age", Some(Unit::Seconds), what, ages)?;
        let mtus = each(peers, |peer| Some(i64::from(peer.path_mtu)));
        let what = "Longest packet that the path to a peer takes.";
        page.gauge("peer_path_mtu", Some(Unit::Bytes), what, mtus)?;
        let waiting = each(peers, |peer| Some(peer.waiting as i64));
        page.gauge("peer_waiting_packets", None, "Packets that wait for a session.", waiting)
    }
}

impl OfRules {
    fn of(snapshot: &Snapshot) -> Self {
        let mut all = Self::default();
        for revision in snapshot.program.revisions() {
            let ruleset = revision.ruleset();
            let family = ruleset.family;
            for table in &ruleset.tables {
                for chain in &table.chains {
                    let mut of = one("family", family.name());
                    of.push(("table", table.name.to_string()));
                    of.push(("chain", chain.name.to_string()));
                    if let Some(base) = chain.base {
                        let counters = snapshot.policy(family, &table.name, base.hook);
                        all.policies.push((of.clone(), counters));
                    }
                    let room = MOST_RULES.saturating_sub(all.rules.len());
                    all.left_out += chain.rules.len().saturating_sub(room);
                    let rules = chain.rules.iter().enumerate().take(room);
                    all.rules.extend(rules.map(|(at, rule)| {
                        (and(of.clone(), "number", &(at + 1).to_string()), snapshot.rule(rule))
                    }));
                }
            }
        }
        all
    }

    fn encode(&self, page: &mut Page<'_>) -> fmt::Result {
        let each = |of: &[(Labels, Counters)], get: fn(&Counters) -> u64| {
            of.iter().map(|(of, counters)| (of.clone(), get(counters))).collect::<Vec<_>>()
        };
        let packets = |counters: &Counters| counters.packets;
        let bytes = |counters: &Counters| counters.bytes;
        let unit = || Some(Unit::Bytes);
        let what = "Packets that a rule matched.";
        page.counter("rule_packets", None, what, each(&self.rules, packets))?;
        let what = "Bytes of the packets that a rule matched, as the save tool counts them.";
        page.counter("rule", unit(), what, each(&self.rules, bytes))?;
        let what = "Packets that the policy of a chain decided.";
        page.counter("policy_packets", None, what, each(&self.policies, packets))?;
        let what = "Bytes of the packets that the policy of a chain decided.";
        page.counter("policy", unit(), what, each(&self.policies, bytes))?;
        let what = "Rules whose counters are not on this page: there are too many.";
        page.gauge("rules_left_out", None, what, [(none(), self.left_out as i64)])
    }
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let page = &mut Page { encoder };
        self.of_run(page)?;
        self.of_process(page)?;
        self.of_frames(page)?;
        self.of_queues(page)?;
        self.of_workers(page)?;
        self.of_ports(page)?;
        self.of_peers(page)?;
        self.counters.as_ref().map_or(Ok(()), |counters| counters.encode(page))
    }
}

/// A page while it is encoded.
struct Page<'e> {
    encoder: DescriptorEncoder<'e>,
}

impl Page<'_> {
    fn counter<V: EncodeCounterValue + Copy>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) -> fmt::Result {
        self.family(name, unit, help, MetricType::Counter, samples, ConstCounter::new)
    }

    fn gauge<V: EncodeGaugeValue + Copy>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) -> fmt::Result {
        self.family(name, unit, help, MetricType::Gauge, samples, ConstGauge::new)
    }

    fn family<V, M: EncodeMetric>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        kind: MetricType,
        samples: impl IntoIterator<Item = (Labels, V)>,
        metric: impl Fn(V) -> M,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for (labels, value) in samples {
            metric(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn none() -> Labels {
    Labels::new()
}

fn one(key: &'static str, value: &str) -> Labels {
    vec![(key, value.to_owned())]
}

fn and(mut labels: Labels, key: &'static str, value: &str) -> Labels {
    labels.push((key, value.to_owned()));
    labels
}

fn way(direction: &Direction) -> Labels {
    vec![("in", direction.from.clone()), ("out", direction.to.clone())]
}
