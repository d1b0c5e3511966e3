//! The captures of tcpdump's own test suite, of many link types, byte orders and ages: every one opens or
//! is refused, every one ends, and where tcpdump reads a file it counts the same packets.
//!
//! Needs the shared data next to the checkout and `tar`; the comparison needs `tcpdump` 4.99 or later.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pktio::{Burst, CaptureReader, EndOfFile, LinkType, Port};

const ARCHIVE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/captures/tcpdump-tests-pcaps.tar.xz"
);

/// Unpacks the archive into a fresh directory named `purpose`; says so and gives nothing if it is absent.
fn captures(purpose: &str) -> Option<Vec<PathBuf>> {
    if !Path::new(ARCHIVE).exists() {
        eprintln!("SKIPPED: no {ARCHIVE}");
        return None;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(purpose);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("the target directory is writable");
    let unpacked = Command::new("tar").arg("-xJf").arg(ARCHIVE).arg("-C").arg(&directory).status();
    if !unpacked.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: tar cannot unpack {ARCHIVE}");
        return None;
    }
    let folder = fs::read_dir(directory.join("tests")).expect("the archive holds a folder");
    let mut files: Vec<_> =
        folder.map(|entry| entry.expect("a folder just unpacked lists").path()).collect();
    files.sort();
    assert!(files.len() > 800, "only {} captures in the archive", files.len());
    Some(files)
}

struct Summary {
    packets: u64,
    link_types: BTreeMap<LinkType, u64>,
    end: EndOfFile,
}

/// Reads a file to its end; the refusal, if it is refused.
fn summary(file: &Path) -> Result<Summary, String> {
    let mut reader = CaptureReader::open(&file.to_string_lossy()).map_err(|e| e.to_string())?;
    let mut burst = Burst::new();
    let mut link_types = BTreeMap::new();
    while reader.rx_burst(&mut burst).expect("a file just unpacked reads") > 0 {
        for frame in burst.iter_mut() {
            *link_types.entry(frame.meta.link_type).or_default() += 1;
        }
    }
    assert!(reader.total_bytes().is_some_and(|total| reader.bytes_read() <= total));
    let end = reader.end().cloned().expect("a file read to its end has one");
    Ok(Summary { packets: reader.stats().rx_frames, link_types, end })
}

#[test]
fn every_capture_opens_or_is_refused_and_ends() {
    let Some(files) = captures("ends") else { return };
    let mut refused = Vec::new();
    let mut damaged = Vec::new();
    let mut link_types: BTreeMap<LinkType, u64> = BTreeMap::new();
    for file in &files {
        match summary(file) {
            Err(refusal) => refused.push(refusal),
            Ok(summary) => {
                if summary.end != EndOfFile::Clean {
                    damaged.push(format!("{}: {}", file.display(), summary.end));
                }
                for (link_type, packets) in summary.link_types {
                    *link_types.entry(link_type).or_default() += packets;
                }
            }
        }
    }
    println!("{} captures, packets by link type: {link_types:?}", files.len());
    println!("refused: {refused:#?}\nended early: {damaged:#?}");
    assert!(refused.iter().all(|refusal| refusal.contains(": byte ")));
    assert!(link_types[&LinkType::ETHERNET] > 1000);
}

/// Packets that tcpdump counts in a file, if it reads it to the end.
fn tcpdump_count(file: &Path) -> Option<u64> {
    let output = Command::new("tcpdump").arg("--count").arg("-r").arg(file).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().next().filter(|_| output.status.success())?.parse().ok()
}

#[test]
fn tcpdump_counts_the_same_packets() {
    let Some(files) = captures("counts") else { return };
    if tcpdump_count(&files[0]).is_none() {
        eprintln!("SKIPPED: no tcpdump that knows --count");
        return;
    }
    let mut compared = 0;
    let mut refused_by_tcpdump = Vec::new();
    for file in &files {
        let Some(expected) = tcpdump_count(file) else {
            refused_by_tcpdump.push(file.file_name().unwrap());
            continue;
        };
        let summary = summary(file).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(summary.packets, expected, "{}: {}", file.display(), summary.end);
        compared += 1;
    }
    println!("compared {compared}; tcpdump refuses {refused_by_tcpdump:?}");
    assert!(compared > 700, "tcpdump read only {compared}");
}
