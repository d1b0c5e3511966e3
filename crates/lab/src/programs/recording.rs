//! What a scene leaves behind in a folder: `host/`, captures, the kernel's counters.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::counters::{Counted, CounterName, of_legacy, of_save};
use super::listing::of_listing;
use super::scenes::Scene;
use super::shuffle;

/// A way of recording; all of the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `tcpdump -i any`: every packet as it came and as it left.
    Any,
    /// One capture for each interface.
    Each,
    /// `tcpdump -i any -Q in`: what came.
    In,
    /// As [`Way::Any`], with frames up to 10 ms away from their place.
    Shuffled,
    /// What rules of the scene logged (`tcpdump -i nflog:N`).
    Nflog,
    /// One interface alone, the one that the scene names.
    One,
    /// As [`Way::Any`], with frames cut to 96 bytes.
    Short,
    /// One pcapng of all interfaces, by dumpcap.
    Dumpcap,
    /// As [`Way::Any`], begun before the scene's second part, while connections stand.
    Late,
}

/// A part of a recording that has a host's folder of its own, and the readings of counters at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    host: &'static str,
    from: &'static str,
    to: &'static str,
}

impl Act {
    /// All of it.
    pub const WHOLE: Self = Self { host: "host", from: "from", to: "expected" };
    /// Until rules changed.
    const FIRST: Self = Self { host: "host", from: "from", to: "mid" };
    /// The second part of the scene.
    const SECOND: Self = Self { host: "late", from: "late", to: "expected" };
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Any,
        Self::Each,
        Self::In,
        Self::Shuffled,
        Self::Nflog,
        Self::One,
        Self::Short,
        Self::Dumpcap,
        Self::Late,
    ];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Each => "each",
            Self::In => "in",
            Self::Shuffled => "shuffled",
            Self::Nflog => "nflog",
            Self::One => "one",
            Self::Short => "short",
            Self::Dumpcap => "dumpcap",
            Self::Late => "late",
        }
    }

    /// The most packets in a hundred that may be unknown in that scene.
    pub fn most_unknown(self, scene: Scene) -> f64 {
        match self {
            Self::One => 100.0,
            Self::In if scene.is_open_inbound() => 100.0,
            Self::In => 5.0 + scene.hidden(),
            _ => 2.0 + scene.hidden(),
        }
    }
}

/// A folder that a scene wrote.
#[derive(Clone, Debug)]
pub struct Recording {
    dir: PathBuf,
}

impl Recording {
    /// What lies in `dir`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The host's folder of an act, as `tamis replay` takes it.
    pub fn host(&self, act: Act) -> PathBuf {
        self.dir.join(act.host)
    }

    /// The acts that a recording of this way has: one, but where rules change midway.
    pub fn acts(&self, way: Way) -> &'static [Act] {
        match way {
            Way::Late => &[Act::SECOND],
            _ if self.dir.join("mid.txt").exists() => &[Act::FIRST, Act::SECOND],
            _ => &[Act::WHOLE],
        }
    }

    /// Whether it was recorded this way.
    pub fn has(&self, way: Way, scene: Scene) -> bool {
        let lies = |file: &str| self.dir.join(file).exists();
        match way {
            Way::Any => lies("any.pcap") || lies("any.pcap.gz"),
            Way::Shuffled => lies("any.pcap"),
            Way::In | Way::Each => lies("in.pcap"),
            Way::Nflog => lies("nflog.pcap") || lies("nflog.pcap.gz"),
            Way::One => scene.one().is_some_and(|device| lies(&format!("{device}.pcap"))),
            Way::Short => lies("short.pcap"),
            Way::Dumpcap => lies("dumpcap.pcapng"),
            Way::Late => lies("late.pcap"),
        }
    }

    /// The time that was counted, as options of `tamis replay`: from when the counters were read first, or the rules
    /// loaded, where the capture began before, to when they were read last, where it went on.
    pub fn span(&self, act: Act) -> Vec<String> {
        let option = |file: &str, option: &str| {
            let time = fs::read_to_string(self.dir.join(file)).ok()?;
            Some([option.to_owned(), time.trim().to_owned()])
        };
        let to = if act.to == "expected" { "to" } else { act.to };
        [option(&format!("{}.txt", act.from), "--from"), option(&format!("{to}.txt"), "--to")]
            .into_iter()
            .flatten()
            .flatten()
            .collect()
    }

    /// Keeps what a test without root needs in the new folder `dir`: the host, what the kernel counted, and the
    /// captures of [`Way::Any`] and [`Way::Nflog`], packed. Of the settings only those that decide where packets go, and how
    /// connections are tracked.
    pub fn keep(&self, dir: &Path) -> io::Result<()> {
        const SETTINGS: [&str; 7] = [
            "forward",
            "rp_filter",
            "accept_local",
            "route_localnet",
            "accept_source_route",
            "nf-call",
            "net.netfilter.nf_conntrack_",
        ];
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir.join("host"))?;
        for entry in fs::read_dir(self.host(Act::WHOLE))? {
            let entry = entry?;
            let is_settings = entry.file_name() == "sysctl.txt";
            let text = fs::read_to_string(entry.path())?;
            let lines = text
                .split_inclusive('\n')
                .filter(|line| !is_settings || SETTINGS.iter().any(|name| line.contains(name)));
            fs::write(dir.join("host").join(entry.file_name()), lines.collect::<String>())?;
        }
        let counters = ["expected", "from"].map(counters);
        let files = counters.iter().flatten().map(|(_, file)| file.as_str());
        for file in ["README", "from.txt", "to.txt"].into_iter().chain(files) {
            if self.dir.join(file).exists() {
                fs::copy(self.dir.join(file), dir.join(file))?;
            }
        }
        for file in ["any.pcap", "nflog.pcap"] {
            if self.dir.join(file).exists() {
                fs::copy(self.dir.join(file), dir.join(file))?;
                pack(&dir.join(file))?;
            }
        }
        Ok(())
    }

    /// The captures of one way, as `tamis replay` takes them.
    pub fn captures(&self, way: Way, scene: Scene) -> io::Result<Vec<String>> {
        let file = |name: &str| {
            let plain = self.dir.join(name);
            let packed = self.dir.join(format!("{name}.gz"));
            if plain.exists() { plain } else { packed }.display().to_string()
        };
        let of_device = |device: &str| format!("{device}={}", file(&format!("{device}.pcap")));
        Ok(match way {
            Way::Any => vec![file("any.pcap")],
            Way::Short => vec![file("short.pcap")],
            Way::Dumpcap => vec![file("dumpcap.pcapng")],
            Way::Late => vec![file("late.pcap")],
            Way::One => scene.one().map(of_device).into_iter().collect(),
            Way::In => vec![file("in.pcap")],
            Way::Nflog => vec![file("nflog.pcap")],
            Way::Shuffled => {
                let bytes = shuffle::shuffled(&fs::read(self.dir.join("any.pcap"))?)?;
                fs::write(self.dir.join("shuffled.pcap"), bytes)?;
                vec![file("shuffled.pcap")]
            }
            Way::Each => self.devices()?.iter().map(|device| of_device(device)).collect(),
        })
    }

    /// Interfaces that have a capture of their own.
    fn devices(&self) -> io::Result<Vec<String>> {
        let links = fs::read_to_string(self.host(Act::WHOLE).join("links.txt"))?;
        let names = links.lines().filter_map(|line| line.split(": ").nth(1));
        let names = names.map(|name| name.split('@').next().unwrap_or(name).to_owned());
        Ok(names.filter(|name| self.dir.join(format!("{name}.pcap")).exists()).collect())
    }

    /// What the kernel counted in that time.
    pub fn kernel(&self, act: Act) -> BTreeMap<CounterName, Counted> {
        let mut all = self.counters(act.to);
        for (place, before) in self.counters(act.from) {
            if let Some(counted) = all.get_mut(&place) {
                counted.packets = counted.packets.saturating_sub(before.packets);
            }
        }
        all
    }

    /// Counters as they were read at one time; none where they were not.
    fn counters(&self, when: &str) -> BTreeMap<CounterName, Counted> {
        let of_file = |(read, file): (ReadCounters, String)| {
            read(&fs::read_to_string(self.dir.join(file)).unwrap_or_default())
        };
        counters(when).into_iter().flat_map(of_file).collect()
    }

    /// Captures that lost frames by their own count.
    pub fn losses(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("losses.txt"));
        let Ok(text) = text else { return vec!["no capture tells how much it lost".to_owned()] };
        text.lines().filter(|line| !line.contains(": 0 packets")).map(str::to_owned).collect()
    }

    /// Where it lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// How the counters of a file are read.
type ReadCounters = fn(&str) -> BTreeMap<CounterName, Counted>;

/// The files of counters that were read at one time.
fn counters(when: &str) -> [(ReadCounters, String); 6] {
    let files: [(ReadCounters, &str); 6] = [
        (|text| of_save("ip", text), ".save"),
        (|text| of_save("ip6", text), "6.save"),
        (|text| of_save("arp", text), "-arp.save"),
        (|text| of_legacy("ip", text), "-legacy.save"),
        (|text| of_legacy("ip6", text), "6-legacy.save"),
        (of_listing, ".nft"),
    ];
    files.map(|(read, end)| (read, format!("{when}{end}")))
}

/// Packs a file by gzip(1): `FILE.gz`, the same bytes every time.
fn pack(file: &Path) -> io::Result<()> {
    let status = Command::new("gzip").args(["-9", "-n"]).arg(file).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("gzip: {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_before_the_first_reading_is_taken_off() {
        let dir = tempfile::tempdir().unwrap();
        let save = |packets: u64, policy: u64| {
            format!("*filter\n:INPUT DROP [{policy}:9]\n[{packets}:9] -A INPUT -p tcp\nCOMMIT\n")
        };
        let packets = || {
            let kernel = Recording::at(dir.path()).kernel(Act::WHOLE);
            kernel.values().map(|counted| counted.packets).collect::<Vec<_>>()
        };
        fs::write(dir.path().join("expected.save"), save(7, 5)).unwrap();
        assert_eq!(packets(), [5, 7], "older recordings have no first reading");
        fs::write(dir.path().join("from.save"), save(2, 1)).unwrap();
        assert_eq!(packets(), [4, 5]);
    }
}
