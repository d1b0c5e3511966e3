//! What a scene leaves behind in a folder: `host/`, captures, the kernel's counters.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::counters::{Counted, Place, of_save};
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
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Any, Self::Each, Self::In, Self::Shuffled, Self::Nflog];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Each => "each",
            Self::In => "in",
            Self::Shuffled => "shuffled",
            Self::Nflog => "nflog",
        }
    }

    /// The most packets in a hundred that may be unknown.
    pub fn most_unknown(self) -> f64 {
        if self == Self::In { 5.0 } else { 2.0 }
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

    /// The host's folder, as `tamis replay` takes it.
    pub fn host(&self) -> PathBuf {
        self.dir.join("host")
    }

    /// Whether it was recorded this way.
    pub fn has(&self, way: Way) -> bool {
        way != Way::Nflog || self.dir.join("nflog.pcap").exists()
    }

    /// The captures of one way, as `tamis replay` takes them.
    pub fn captures(&self, way: Way) -> io::Result<Vec<String>> {
        let file = |name: &str| self.dir.join(name).display().to_string();
        Ok(match way {
            Way::Any => vec![file("any.pcap")],
            Way::In => vec![file("in.pcap")],
            Way::Nflog => vec![file("nflog.pcap")],
            Way::Shuffled => {
                let bytes = shuffle::shuffled(&fs::read(self.dir.join("any.pcap"))?)?;
                fs::write(self.dir.join("shuffled.pcap"), bytes)?;
                vec![file("shuffled.pcap")]
            }
            Way::Each => self
                .devices()?
                .into_iter()
                .map(|device| format!("{device}={}", file(&format!("{device}.pcap"))))
                .collect(),
        })
    }

    /// Interfaces that have a capture of their own.
    fn devices(&self) -> io::Result<Vec<String>> {
        let links = fs::read_to_string(self.host().join("links.txt"))?;
        let names = links.lines().filter_map(|line| line.split(": ").nth(1));
        let names = names.map(|name| name.split('@').next().unwrap_or(name).to_owned());
        Ok(names.filter(|name| self.dir.join(format!("{name}.pcap")).exists()).collect())
    }

    /// What the kernel counted.
    pub fn kernel(&self) -> BTreeMap<Place, Counted> {
        let files =
            [("ip", "expected.save"), ("ip6", "expected6.save"), ("arp", "expected-arp.save")];
        let texts = files.map(|(family, file)| (family, fs::read_to_string(self.dir.join(file))));
        texts
            .iter()
            .flat_map(|(family, text)| of_save(family, text.as_deref().unwrap_or_default()))
            .collect()
    }

    /// Captures that lost frames by their own count.
    pub fn losses(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("losses.txt"));
        let Ok(text) = text else { return vec!["no capture said how much it lost".to_owned()] };
        text.lines().filter(|line| !line.contains(": 0 packets")).map(str::to_owned).collect()
    }

    /// Where it lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
