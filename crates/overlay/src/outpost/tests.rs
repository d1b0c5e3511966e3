//! What idle paths cost in memory.

use std::process::Command;

use super::*;
use crate::name::Name;

/// The paths, and the nodes that they are between: each has one path by each of 16 ports.
const PATHS: usize = 100_000;
const NODES: usize = 12_500;
/// Bytes that they may take.
const MOST: usize = 32_000_000;

struct Fixed;

impl Entropy for Fixed {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.fill(1);
        Ok(())
    }
}

/// Bytes of this process that lie in memory.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}

fn end(number: usize) -> End {
    let mut key = [7; 32];
    key[..8].copy_from_slice(&number.to_le_bytes());
    let ip = [203, 0, (number >> 8) as u8, number as u8];
    let at = Some(SocketAddr::from((ip, 51_900)));
    let name: Name = format!("node-{number}").parse().unwrap();
    End { name, key: PublicKey::new(key), at }
}

/// In a process of its own, which no other test shares.
#[test]
#[cfg(target_os = "linux")]
fn a_hundred_thousand_idle_paths_take_less_than_32_megabytes() {
    let own = std::env::current_exe().unwrap();
    let mut measured = Command::new(own);
    measured.args(["--exact", "outpost::tests::idle_paths", "--ignored", "--nocapture"]);
    let output = measured.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let bytes = text.lines().find_map(|line| line.split("bytes: ").nth(1)?.parse::<usize>().ok());
    let bytes = bytes.unwrap_or_else(|| panic!("{text}"));
    assert!(bytes > 1_000_000 && bytes < MOST, "{bytes}");
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "the test above runs it"]
fn idle_paths() {
    let before = resident();
    let ports = 52_000..=52_031;
    let mut outpost = Outpost::new(ports, Vec::new(), &mut Fixed).unwrap();
    let series = Series { by: 1, to: outpost.started, number: 1 };
    for path in 0..PATHS {
        let (node, ring) = (path % NODES, path / NODES);
        let mut ends = [end(node), end((node + ring + 1) % NODES)];
        ends.sort_by(|one, other| one.name.cmp(&other.name));
        let port = 52_000 + 2 * ring as u16 + ((node / (ring + 1)) % 2) as u16;
        let sources = ends.each_ref().map(|end| end.at);
        let pair = Pair::of(&ends[0].name, &ends[1].name);
        let join = Join { series, port, ends };
        let body = Body::Join(Box::new(join));
        let number = path as u64 + 1;
        outpost.receive(&Message { transaction: number, body }.to_bytes(), number);
        outpost.relay.restore(&pair, sources);
        outpost.take_changed();
    }
    let body = Body::Relayed { series, whole: PATHS as u64 };
    outpost.receive(&Message { transaction: 1, body }.to_bytes(), 1);
    let bytes = resident() - before;
    let bound = outpost.paths().filter(|path| !path.sources.contains(&None)).count();
    assert_eq!((outpost.pairs().count(), outpost.named.is_none()), (PATHS, true));
    assert!(bound > PATHS * 9 / 10, "{bound}");
    println!("bytes: {bytes}");
}
