//! [`Config`]: the settings of connection tracking, with the kernel's defaults.
//!
//! Source: `Documentation/networking/nf_conntrack-sysctl.rst`, and the default tables of the protocol
//! trackers of Linux 6.18. All times are nanoseconds.

use crate::chance::Entropy;
use crate::second::SECOND;
use crate::steer::Shard;
use packet::Checksums;

/// Entries of the table unless the command line says otherwise.
pub const DEFAULT_MAX: usize = 262_144;

/// Most entries that a table can have.
const MOST: usize = 1 << 30;

/// What the capture is to the connections in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Their table was empty before it, and it holds every packet: nothing is in doubt.
    Kernel,
    /// The capture may have begun in their middle, and may hold one side of them: see [`Unseen`](super::flow::Unseen).
    #[default]
    Midstream,
    /// Nothing is tracked and every state is unknown.
    Off,
}

/// Settings of a [`Tracker`](super::Tracker).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What is done with segments of unknown flows.
    pub mode: Mode,
    /// Most flows held at a time (`nf_conntrack_max`); at most 2^30.
    pub max: usize,
    /// The source of random numbers. Where they are drawn here, packets pass through this table, live, and a flow that
    /// it evicts no longer exists. Otherwise the table stands for the kernel's, whose draws are unknown and which may
    /// have evicted others.
    pub entropy: Entropy,
    /// Which worker's part of the flows this is, where several share them.
    pub shard: Option<Shard>,
    /// What the keys of the table's hashes are drawn from; at random where there is none. Nothing but time depends on it.
    pub seed: Option<u64>,
    /// Most expected flows at a time (`nf_conntrack_expect_max`).
    pub expect_max: usize,
    /// Whether upper-layer checksums are verified (`nf_conntrack_checksum`); a wrong one is INVALID.
    pub checksums: Checksums,
    /// DCCP is tracked as any other protocol. Older kernels have a tracker for it, which is not modelled: its packets are
    /// unknown there.
    pub dccp_is_generic: bool,
    /// ICMPv6 messages of multicast router discovery are exempt from tracking; else their state is unknown.
    pub discovery_is_exempt: bool,
    /// Of several ports a DNAT takes the first free one; else the first that it tries is drawn.
    pub destination_ports_in_order: bool,
    /// Flows are picked up in their middle (`nf_conntrack_tcp_loose`).
    pub loose: bool,
    /// Nanoseconds after the first packet in which TCP flows that begin in their middle, and all UDP flows, count as
    /// established: they may be older than the table.
    pub grace: u64,
    /// Segments out of window are accepted (`nf_conntrack_tcp_be_liberal`).
    pub liberal: bool,
    /// Resets out of sequence are accepted (`nf_conntrack_tcp_ignore_invalid_rst`).
    pub ignore_invalid_rst: bool,
    /// Retransmissions after which the timeout is shortened (`nf_conntrack_tcp_max_retrans`).
    pub max_retrans: u8,
    /// How long flows live without packets.
    pub timeouts: Timeouts,
}

impl Config {
    /// Returns the settings of one worker of several, with room for the flows of its shard.
    #[must_use]
    pub fn of_shard(&self, shard: Shard) -> Self {
        Self { max: shard.max, shard: Some(shard), ..self.clone() }
    }

    /// Sets what a host says by its sysctl of this name, without the prefix `nf_conntrack_`. False where nothing here
    /// depends on it.
    pub fn set(&mut self, name: &str, value: u32) -> bool {
        let is_set = value != 0;
        match name {
            "tcp_loose" => self.loose = is_set,
            "tcp_be_liberal" => self.liberal = is_set,
            "tcp_ignore_invalid_rst" => self.ignore_invalid_rst = is_set,
            "tcp_max_retrans" => self.max_retrans = u8::try_from(value).unwrap_or(u8::MAX),
            "checksum" if !is_set => self.checksums = Checksums::Ignore,
            "max" if is_set => self.max = (value as usize).min(MOST),
            "expect_max" if is_set => self.expect_max = value as usize,
            "checksum" | "max" | "expect_max" => {}
            _ => return self.timeouts.set(name, value),
        }
        true
    }

    /// Whether what this table does is what happens.
    pub(crate) fn decides(&self) -> bool {
        self.entropy != Entropy::Unknown
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            max: DEFAULT_MAX,
            entropy: Entropy::Unknown,
            shard: None,
            seed: None,
            expect_max: 4096,
            checksums: Checksums::default(),
            dccp_is_generic: true,
            discovery_is_exempt: true,
            destination_ports_in_order: true,
            loose: true,
            grace: 0,
            liberal: false,
            ignore_invalid_rst: false,
            max_retrans: 3,
            timeouts: Timeouts::default(),
        }
    }
}

/// How long flows live without packets, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP by state ([`tcp::State`](super::tcp::State) as index); place 0 is not used.
    pub tcp: [u64; 10],
    /// TCP after too many retransmissions.
    pub tcp_max_retrans: u64,
    /// TCP with data that the other side has not acknowledged.
    pub tcp_unacknowledged: u64,
    /// UDP and UDP-Lite without an answer.
    pub udp: u64,
    /// UDP streams.
    pub udp_stream: u64,
    /// ICMP queries.
    pub icmp: u64,
    /// ICMPv6 queries.
    pub icmpv6: u64,
    /// SCTP by state ([`sctp::State`](super::sctp::State) as index); place 0 is not used.
    pub sctp: [u64; 9],
    /// GRE without an answer.
    pub gre: u64,
    /// GRE with one.
    pub gre_stream: u64,
    /// Every other protocol.
    pub generic: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            tcp: [0, 120, 60, 432_000, 120, 60, 30, 120, 10, 120].map(|s: u64| s * SECOND),
            tcp_max_retrans: 300 * SECOND,
            tcp_unacknowledged: 300 * SECOND,
            udp: 30 * SECOND,
            udp_stream: 120 * SECOND,
            icmp: 30 * SECOND,
            icmpv6: 30 * SECOND,
            sctp: [0, 10, 3, 3, 210, 3, 3, 3, 30].map(|s: u64| s * SECOND),
            gre: 30 * SECOND,
            gre_stream: 180 * SECOND,
            generic: 600 * SECOND,
        }
    }
}

impl Timeouts {
    /// Sets one by the name of its sysctl without the prefix `nf_conntrack_`, such as
    /// `tcp_timeout_established`. False where there is no such name.
    pub fn set(&mut self, name: &str, seconds: u32) -> bool {
        let Some(place) = self.place(name) else { return false };
        *place = u64::from(seconds) * SECOND;
        true
    }

    fn place(&mut self, name: &str) -> Option<&mut u64> {
        if let Some(state) = name.strip_prefix("tcp_timeout_") {
            return self.tcp_place(state);
        }
        if let Some(state) = name.strip_prefix("sctp_timeout_") {
            let index = SCTP_NAMES.iter().position(|other| *other == state)?;
            return self.sctp.get_mut(index + 1);
        }
        Some(match name {
            "udp_timeout" => &mut self.udp,
            "udp_timeout_stream" => &mut self.udp_stream,
            "icmp_timeout" => &mut self.icmp,
            "icmpv6_timeout" => &mut self.icmpv6,
            "gre_timeout" => &mut self.gre,
            "gre_timeout_stream" => &mut self.gre_stream,
            "generic_timeout" => &mut self.generic,
            _ => return None,
        })
    }

    fn tcp_place(&mut self, state: &str) -> Option<&mut u64> {
        match state {
            "max_retrans" => Some(&mut self.tcp_max_retrans),
            "unacknowledged" => Some(&mut self.tcp_unacknowledged),
            _ => {
                let index = TCP_NAMES.iter().position(|other| *other == state)?;
                self.tcp.get_mut(index + 1)
            }
        }
    }

    /// The longest that a flow of this protocol can live without packets.
    #[must_use]
    pub fn longest(&self, protocol: u8) -> u64 {
        let most = |times: &[u64]| times.iter().copied().max().unwrap_or(0);
        match protocol {
            packet::tcp::PROTOCOL => {
                most(&self.tcp).max(self.tcp_max_retrans).max(self.tcp_unacknowledged)
            }
            packet::udp::PROTOCOL | packet::udp::PROTOCOL_LITE => self.udp.max(self.udp_stream),
            packet::icmpv4::PROTOCOL => self.icmp,
            packet::icmpv6::PROTOCOL => self.icmpv6,
            packet::sctp::PROTOCOL => most(&self.sctp),
            packet::gre::PROTOCOL => self.gre.max(self.gre_stream),
            _ => self.generic,
        }
    }
}

const TCP_NAMES: [&str; 8] = [
    "syn_sent",
    "syn_recv",
    "established",
    "fin_wait",
    "close_wait",
    "last_ack",
    "time_wait",
    "close",
];

const SCTP_NAMES: [&str; 8] = [
    "closed",
    "cookie_wait",
    "cookie_echoed",
    "established",
    "shutdown_sent",
    "shutdown_recd",
    "shutdown_ack_sent",
    "heartbeat_sent",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_says_how_it_tracks() {
        let mut config = Config::default();
        for (name, value) in [
            ("tcp_loose", 0),
            ("tcp_be_liberal", 1),
            ("tcp_max_retrans", 7),
            ("checksum", 0),
            ("max", 65_536),
            ("tcp_timeout_established", 7440),
        ] {
            assert!(config.set(name, value), "{name}");
        }
        let Config { loose, liberal, max_retrans, checksums, max, .. } = config;
        assert_eq!((loose, liberal, max_retrans, max), (false, true, 7, 65_536));
        assert_eq!(checksums, Checksums::Ignore);
        assert_eq!(config.timeouts.tcp[3], 7440 * SECOND);
        assert!(!config.set("log_invalid", 1));
        // No bound: there is room here for as many as before.
        assert!(config.set("max", 0) && config.max == 65_536);
    }

    #[test]
    fn timeouts_are_set_by_sysctl_name() {
        let mut timeouts = Timeouts::default();
        assert!(timeouts.set("tcp_timeout_established", 7));
        assert_eq!(timeouts.tcp[3], 7 * SECOND);
        assert!(timeouts.set("tcp_timeout_close", 9) && timeouts.set("sctp_timeout_closed", 8));
        assert_eq!((timeouts.tcp[8], timeouts.sctp[1]), (9 * SECOND, 8 * SECOND));
        assert!(timeouts.set("udp_timeout_stream", 3) && timeouts.set("generic_timeout", 1));
        assert_eq!((timeouts.udp_stream, timeouts.generic), (3 * SECOND, SECOND));
        assert!(!timeouts.set("tcp_timeout_nosuch", 1) && !timeouts.set("dccp_timeout", 1));
    }

    /// Linux `Documentation/networking/nf_conntrack-sysctl.rst`.
    #[test]
    fn each_sysctl_of_a_timeout_sets_another_one() {
        let tcp = TCP_NAMES.iter().chain(&["max_retrans", "unacknowledged"]);
        let tcp = tcp.map(|state| format!("tcp_timeout_{state}"));
        let sctp = SCTP_NAMES.iter().map(|state| format!("sctp_timeout_{state}"));
        let others = ["udp_timeout", "udp_timeout_stream", "icmp_timeout", "icmpv6_timeout"];
        let rest = ["gre_timeout", "gre_timeout_stream", "generic_timeout"];
        let rest = others.into_iter().chain(rest).map(str::to_owned);
        let mut seen = vec![Timeouts::default()];
        for name in tcp.chain(sctp).chain(rest) {
            let mut timeouts = Timeouts::default();
            assert!(timeouts.set(&name, 7777), "{name}");
            assert!(!seen.contains(&timeouts), "{name}");
            seen.push(timeouts);
        }
    }

    #[test]
    fn the_longest_is_of_the_protocol() {
        let timeouts = Timeouts::default();
        assert_eq!(timeouts.longest(6), 432_000 * SECOND);
        assert_eq!(timeouts.longest(17), 120 * SECOND);
        assert_eq!(timeouts.longest(89), 600 * SECOND);
        assert_eq!(timeouts.longest(47), 180 * SECOND);
        assert_eq!(timeouts.longest(132), 210 * SECOND);
        let answers = Timeouts { icmpv6: 7, ..timeouts };
        assert_eq!([answers.longest(1), answers.longest(58)], [30 * SECOND, 7]);
    }
}
