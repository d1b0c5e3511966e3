//! From TOML to [`Settings`].

use pktio::{FaultRates, XdpMode};
use rules::model::Family;
use toml::de::DeTable;

use super::{
    At, ConfigError, Gone, Kind, LinkLoss, Named, OnPanic, Other, PortSettings, RestartSettings,
    RulesSettings, Settings, Ttl, WireSettings,
};
use super::{dpdk, metrics, middlebox, port, privileges, work};
use dataplane::config::Unresolved;
use dataplane::keys::{LineStarts, Section, Value, Wrong, document, found, only, string};

const TOP: [&str; 12] = [
    "port",
    "wire",
    "rules",
    "workers",
    "burst",
    "conntrack",
    "control",
    "metrics",
    "middlebox",
    "log",
    "privileges",
    "dpdk",
];

/// The kinds of ports, with each kind's own keys.
const KINDS: [(&str, &[&str]); 8] = [
    ("af_packet", &["device", "queues", "gone"]),
    ("af_xdp", &["device", "queues", "mode", "gone"]),
    ("tun", &["device", "gone"]),
    ("dpdk", &["device", "mtu"]),
    ("pcap", &["file", "out", "pace", "speed", "mtu"]),
    ("loopback", &["mtu"]),
    ("tunnel", &["file"]),
    ("fault", &["of", "seed", "drop", "duplicate", "truncate", "corrupt", "delay", "reorder"]),
];
const PORT: [&str; 3] = ["name", "kind", "address"];
const WIRE: [&str; 6] = ["ports", "ttl", "other", "link", "scheme", "order"];

/// Ports and wires that a file may have.
const MOST: usize = 256;

/// Connections that a table may be made for.
const MOST_CONNECTIONS: u64 = 1 << 30;

/// Seconds of grace: an hour.
const MOST_GRACE: u64 = 3600;

/// Parts per million.
const ALWAYS: u64 = 1_000_000;

impl Settings {
    /// Reads a configuration that came from `file`.
    ///
    /// # Errors
    /// The text is refused at a line and column.
    pub fn from_text(file: &str, text: &str) -> Result<Self, ConfigError> {
        let reader = Reader { file, text, lines: LineStarts::of(text.as_bytes()) };
        reader.settings().map_err(|(span, what)| {
            let at = reader.at(span.start);
            ConfigError { file: file.to_owned(), at, what }
        })
    }
}

struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    lines: LineStarts,
}

impl<'t> Reader<'t> {
    fn settings(&self) -> Result<Settings, Wrong> {
        let document = document(self.text)?;
        let top = document.get_ref();
        only(top, &TOP, &[])?;
        let ports = self.ports(top)?;
        let wires = self.wires(top, &ports)?;
        let (privileges, reopen) = privileges::read(top)?;
        let middlebox =
            middlebox::middlebox(top, |start| self.at(start), |value| self.named(value))?;
        middlebox::has_its_privileges(top, privileges, middlebox.as_ref())?;
        let mut settings = Settings {
            file: self.file.to_owned(),
            ports,
            wires,
            rules: Vec::new(),
            own: Vec::new(),
            ipset: None,
            bans: None,
            unknown: Unresolved::default(),
            on_panic: OnPanic::default(),
            connections: conntrack::Config::default().max,
            restart: RestartSettings::default(),
            privileges,
            reopen,
            socket: None,
            journal: None,
            metrics: metrics::metrics(top)?,
            log: metrics::log(top)?,
            middlebox,
            workers: work::workers(top)?,
            burst: work::burst(top)?,
            eal: dpdk::eal(top)?,
        };
        self.rules(top, &mut settings)?;
        if let Some(value) = top.get("conntrack") {
            let keys = ["max", "file", "grace"];
            let conntrack = Section::new("[conntrack]", value, &keys, &[])?;
            if let Some(max) = conntrack.number("max", MOST_CONNECTIONS)? {
                settings.connections = max as usize;
            }
            let file = conntrack.get("file").map(|value| self.named(value)).transpose()?;
            let grace = conntrack.number("grace", MOST_GRACE)?.unwrap_or(0);
            settings.restart = RestartSettings { file, grace };
        }
        if let Some(value) = top.get("control") {
            let control = Section::new("[control]", value, &["socket", "journal"], &[])?;
            settings.socket = Some(self.named(control.need("socket")?)?);
            settings.journal = control.get("journal").map(|value| self.named(value)).transpose()?;
        }
        Ok(settings)
    }

    fn ports(&self, top: &DeTable<'t>) -> Result<Vec<PortSettings>, Wrong> {
        let sections = self.listed(top, "port", "at least one [[port]]")?;
        let mut ports: Vec<PortSettings> = Vec::new();
        for value in sections {
            let port = self.port(value, &ports)?;
            ports.push(port);
        }
        Ok(ports)
    }

    fn port(&self, value: &Value<'t>, before: &[PortSettings]) -> Result<PortSettings, Wrong> {
        // The kind says which keys there are, so it is looked at first.
        let any = Section::any("[[port]]", value)?;
        any.need("kind")?;
        let keys = any.choice("kind", &KINDS, &[])?.unwrap_or_default();
        let keys: Vec<&str> = PORT.iter().chain(keys).copied().collect();
        let section = Section::new("[[port]]", value, &keys, &[])?;
        let name = self.name(section.need("name")?, before)?;
        let kind = match string(section.need("kind")?)? {
            "pcap" => self.pcap(&section)?,
            "loopback" => Kind::Loopback,
            "tunnel" => Kind::Tunnel { file: self.named(section.need("file")?)? },
            "af_packet" => {
                Kind::AfPacket { device: device(&section)?, queues: port::queues(&section)? }
            }
            "af_xdp" => af_xdp(&section)?,
            "tun" => Kind::Tun { device: device(&section)? },
            "dpdk" => Kind::Dpdk { device: device(&section)? },
            "fault" => self.fault(&section, before)?,
            kind => return Err(unread(section.need("kind")?, kind)),
        };
        let named = section.get("device").map_or(section.need("name")?, |device| device);
        let words = [("wait", Gone::Wait), ("end", Gone::End)];
        Ok(PortSettings {
            name,
            kind,
            addresses: port::addresses(&section)?,
            mtu: port::mtu(&section)?,
            gone: section.choice("gone", &words, &[])?.unwrap_or_default(),
            at: self.at(named.span().start),
        })
    }

    /// A name as the kernel takes it for an interface, that no other port has.
    fn name(&self, value: &Value<'t>, before: &[PortSettings]) -> Result<String, Wrong> {
        const MOST_BYTES: usize = 15;
        let name = string(value)?;
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || c == '/' || c == ':';
        if name.is_empty() || name.len() > MOST_BYTES || name.contains(is_bad) {
            let what = "expected 1 to 15 bytes without spaces, / and :";
            return Err((value.span(), format!("{what}, found \"{name}\"")));
        }
        match before.iter().find(|port| port.name == name) {
            Some(_) => {
                Err((value.span(), format!("expected a name of its own, found \"{name}\" again")))
            }
            None => Ok(name.to_owned()),
        }
    }

    fn pcap(&self, section: &Section<'_, 't>) -> Result<Kind, Wrong> {
        let named = |key| section.get(key).map(|value| self.named(value)).transpose();
        let (file, out) = (named("file")?, named("out")?);
        match (&file, &out) {
            (None, None) => Err(section.need("file").err().unwrap_or_default()),
            _ => Ok(Kind::Pcap { file, pace: port::pace(section)?, out }),
        }
    }

    fn fault(&self, section: &Section<'_, 't>, before: &[PortSettings]) -> Result<Kind, Wrong> {
        let of = section.need("of")?;
        let name = string(of)?;
        let place = before.iter().position(|port| port.name == name);
        if before.iter().filter_map(PortSettings::wraps).any(|wrapped| Some(wrapped) == place) {
            return Err(taken(of, name));
        }
        let rate = |key| Ok::<_, Wrong>(section.number(key, ALWAYS)?.unwrap_or(0) as u32);
        Ok(Kind::Fault {
            of: place.ok_or_else(|| no_port(of, name, before))?,
            seed: section.number("seed", i64::MAX as u64)?.unwrap_or(0),
            rates: FaultRates {
                drop: rate("drop")?,
                duplicate: rate("duplicate")?,
                truncate: rate("truncate")?,
                corrupt: rate("corrupt")?,
                delay: rate("delay")?,
                reorder: rate("reorder")?,
            },
        })
    }

    fn wires(&self, top: &DeTable<'t>, ports: &[PortSettings]) -> Result<Vec<WireSettings>, Wrong> {
        let mut had: Vec<usize> = ports.iter().filter_map(PortSettings::wraps).collect();
        let of_all = work::scheme(top)?;
        let mut wires = Vec::new();
        for value in self.listed(top, "wire", "at least one [[wire]]")? {
            let wire = Section::new("[[wire]]", value, &WIRE, &[])?;
            let given = wire.need("ports")?;
            let what = "a list of two ports";
            let names = given.get_ref().as_array().ok_or_else(|| found(given, what))?;
            let [first, second] = &**names else {
                return Err((given.span(), format!("expected {what}, found {}", names.len())));
            };
            let mut places = [0; 2];
            for (place, value) in places.iter_mut().zip([first, second]) {
                let name = string(value)?;
                let found = ports.iter().position(|port| port.name == name);
                *place = found.ok_or_else(|| no_port(value, name, ports))?;
                if had.contains(place) {
                    return Err(taken(value, name));
                }
                had.push(*place);
            }
            port::all_carried(ports, places, [first, second])?;
            let words = [("keep", Ttl::Keep), ("lower", Ttl::Lower)];
            let ttl = wire.choice("ttl", &words, &[])?.unwrap_or_default();
            let at = self.at(wire.get("ttl").map_or(wire.span.0, |ttl| ttl.span().start));
            let words = [("pass", Other::Pass), ("drop", Other::Drop)];
            let other = wire.choice("other", &words, &[])?.unwrap_or_default();
            let words = [("keep", LinkLoss::Keep), ("pass", LinkLoss::Pass)];
            let link = wire.choice("link", &words, &[])?.unwrap_or_default();
            let is_device = |place: &usize| {
                matches!(ports[*place].kind, Kind::AfPacket { .. } | Kind::Tun { .. })
            };
            if let (LinkLoss::Pass, Some(value), false) =
                (link, wire.get("link"), places.iter().all(is_device))
            {
                let what = "expected ports of kind af_packet or tun on a wire with link = \"pass\"";
                return Err((value.span(), what.to_owned()));
            }
            let order = work::order(&wire, of_all)?;
            wires.push(WireSettings { ports: places, ttl, other, link, order, at });
        }
        Ok(wires)
    }

    fn rules(&self, top: &DeTable<'t>, settings: &mut Settings) -> Result<(), Wrong> {
        let end = self.text.len();
        let value = top.get("rules").ok_or_else(|| (end..end, "expected [rules]".to_owned()))?;
        let keys = ["ip", "ip6", "arp", "bridge", "ipset", "bans", "unknown", "on_panic"];
        let section = Section::new("[rules]", value, &keys, &[])?;
        for family in Family::ALL {
            let Some(value) = section.get(family.name()) else { continue };
            settings.rules.push(RulesSettings { family, file: self.named(value)? });
        }
        // Where packets age they are routed, and no bridge's rules see them.
        let ages = settings.wires.iter().any(|wire| wire.ttl == Ttl::Lower);
        if let (Some(value), true) = (section.get("bridge"), ages) {
            let what = "bridge on a wire with ttl = \"lower\": a router's packets cross no bridge";
            return Err((value.span(), what.to_owned()));
        }
        if settings.rules.is_empty() {
            return Err((value.span(), "expected one of ip ip6 arp bridge in [rules]".to_owned()));
        }
        let named = |key| section.get(key).map(|value| self.named(value)).transpose();
        (settings.ipset, settings.bans) = (named("ipset")?, named("bans")?);
        let unknown = [("drop", Unresolved::Drop), ("accept", Unresolved::Accept)];
        settings.unknown = section.choice("unknown", &unknown, &[])?.unwrap_or_default();
        let panic = [("closed", OnPanic::Closed), ("open", OnPanic::Open)];
        settings.on_panic = section.choice("on_panic", &panic, &[])?.unwrap_or_default();
        Ok(())
    }

    /// The tables of a list, which is required.
    fn listed<'a>(
        &self,
        top: &'a DeTable<'t>,
        key: &str,
        what: &str,
    ) -> Result<&'a [Value<'t>], Wrong> {
        let end = self.text.len();
        let missing = || (end..end, format!("expected {what}"));
        let value = top.get(key).ok_or_else(missing)?;
        let tables = value.get_ref().as_array().ok_or_else(|| found(value, what))?;
        match tables.len() {
            0 => Err((value.span(), format!("expected {what}"))),
            1..=MOST => Ok(tables),
            more => Err((value.span(), format!("expected at most {MOST} of them, found {more}"))),
        }
    }

    fn named(&self, value: &Value<'t>) -> Result<Named, Wrong> {
        Named::of(self.file, &self.lines, value)
    }

    fn at(&self, offset: usize) -> At {
        At::of(&self.lines, offset)
    }
}

fn taken(value: &Value<'_>, name: &str) -> Wrong {
    (value.span(), format!("expected a port that nothing else has, found \"{name}\" again"))
}

/// A kind of [`KINDS`] that nothing reads.
fn unread(value: &Value<'_>, kind: &str) -> Wrong {
    (value.span(), format!("expected a kind of port that is read, found \"{kind}\""))
}

fn no_port(value: &Value<'_>, name: &str, ports: &[PortSettings]) -> Wrong {
    let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
    (value.span(), format!("expected one of the ports {}, found \"{name}\"", names.join(" ")))
}

fn af_xdp(section: &Section<'_, '_>) -> Result<Kind, Wrong> {
    let modes =
        [("auto", XdpMode::Auto), ("native", XdpMode::Native), ("generic", XdpMode::Generic)];
    Ok(Kind::AfXdp {
        device: device(section)?,
        queues: port::queues(section)?,
        mode: section.choice("mode", &modes, &[])?.unwrap_or_default(),
    })
}

/// The name of a port's interface.
fn device(section: &Section<'_, '_>) -> Result<String, Wrong> {
    let value = section.need("device")?;
    match string(value)? {
        "" => Err((value.span(), "expected the name of an interface, found nothing".to_owned())),
        name => Ok(name.to_owned()),
    }
}
