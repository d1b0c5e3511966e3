//! The program as its users run it, on captures made of packet specs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pktio::pcap_file::NgWriter;
use pktio::{Burst, CaptureReader, Frame, FrameMeta, Interface, LinkType, Port, Timestamp};
use tempfile::TempDir;

/// Time of the first packet, in nanoseconds since the epoch: 2026-11-21T10:00:00Z.
pub(crate) const START: i64 = 1_795_255_200_000_000_000;

/// A directory with rules and captures, removed after the test.
pub(crate) struct Bench {
    pub(crate) dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Rules of the filter table's FORWARD chain, whose policy is DROP.
    pub(crate) fn forward(&self, name: &str, rules: &[&str]) -> String {
        let rules: String = rules.iter().map(|rule| format!("-A FORWARD {rule}\n")).collect();
        self.file(name, format!("*filter\n:FORWARD DROP [0:0]\n{rules}COMMIT\n"))
    }

    /// A capture of packet specs, a second apart.
    pub(crate) fn capture(&self, name: &str, packets: &[&str]) -> String {
        let frames: Vec<Vec<u8>> =
            packets.iter().map(|spec| replay::spec::parse(spec).unwrap().frame).collect();
        self.frames(
            name,
            &[ethernet("eth0")],
            &frames.iter().map(|f| (0, &**f)).collect::<Vec<_>>(),
        )
    }

    /// A capture of frames, each of one of the interfaces, a second apart.
    pub(crate) fn frames(
        &self,
        name: &str,
        interfaces: &[Interface],
        frames: &[(u32, &[u8])],
    ) -> String {
        let mut writer = NgWriter::new(Vec::new()).unwrap();
        for interface in interfaces {
            writer.add_interface(interface).unwrap();
        }
        for (second, (interface, bytes)) in (0..).zip(frames) {
            let timestamp = Some(Timestamp::from_nanos(START + second * 1_000_000_000));
            let wire_length = bytes.len() as u32;
            let meta = FrameMeta { timestamp, wire_length, ..FrameMeta::default() };
            writer.write(*interface, Frame { bytes, meta: &meta }, None).unwrap();
        }
        self.file(name, writer.finish().unwrap())
    }
}

pub(crate) fn ethernet(name: &str) -> Interface {
    Interface { name: Some(name.to_owned()), link_type: LinkType::ETHERNET, snaplen: 0 }
}

/// One frame of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) bytes: Vec<u8>,
    pub(crate) nanos: Option<i64>,
    pub(crate) link_type: LinkType,
    pub(crate) interface: Option<String>,
}

/// Every frame of a capture, which must be whole.
pub(crate) fn read(path: &Path) -> Vec<Kept> {
    let mut reader = CaptureReader::open(path.to_str().unwrap()).unwrap();
    let mut burst = Burst::new();
    let mut kept = Vec::new();
    while reader.rx_burst(&mut burst).unwrap() > 0 {
        for frame in burst.iter() {
            let interface = &reader.interfaces()[frame.meta.interface as usize];
            kept.push(Kept {
                bytes: frame.bytes.to_vec(),
                nanos: frame.meta.timestamp.map(Timestamp::as_nanos),
                link_type: frame.meta.link_type,
                interface: interface.name.clone(),
            });
        }
    }
    assert_eq!(reader.warning(), None);
    kept
}

/// Runs tamis.
pub(crate) fn tamis(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tamis")).args(args).output().unwrap()
}

/// Standard output of a run that ends with `code`.
pub(crate) fn stdout(code: i32, args: &[&str]) -> String {
    let output = tamis(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "tamis {args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line on standard error of a run that ends with 2.
pub(crate) fn refusal(args: &[&str]) -> String {
    let output = tamis(args);
    assert_eq!(output.status.code(), Some(2), "tamis {args:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// The JSON report of a run that ends with `code`.
pub(crate) fn report(code: i32, args: &[&str]) -> serde_json::Value {
    let mut args = args.to_vec();
    args.push("--json");
    serde_json::from_str(&stdout(code, &args)).unwrap()
}
