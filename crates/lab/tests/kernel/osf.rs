//! `-m osf` against the kernel: fingerprints of `nfnl_osf`, random ones and those of `pf.os` where this machine has the
//! file, and SYNs that look like them but for a byte now and then. Needs root, the legacy tools and nfnl_osf; without
//! them it says so and passes.
//!
//! The kernel has one list of fingerprints for all namespaces. Those of this test have genres of their own, and are
//! taken out again.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use fastrand::Rng;
use host::{Fingerprint, Fingerprints, Host, Window};
use lab::oracle::compare::Session;
use lab::oracle::load::lacking;
use lab::oracle::netns::in_fresh;
use lab::scene::{Placement, Scene, Wire};
use rules::model::Family;

use crate::setting;

const GENRES: [&str; 4] = ["tamisOne", "tamisTwo", "tamisThree", "tamisFour"];
/// Where Debian's nftables has the file.
const PF_OS: &str = "/usr/share/doc/nftables/examples/pf.os";
const BATCH: u64 = 2000;

#[test]
fn syns_look_like_their_fingerprints_to_both() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let mut rng = Rng::with_seed(setting("TAMIS_ORACLE_SEED", 1));
    let text = fingerprints(&mut rng);
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("pf.os");
    fs::write(&file, &text).unwrap();
    if let Err(error) = nfnl_osf(&["-f"], &file) {
        eprintln!("SKIPPED: nfnl_osf: {error}");
        return;
    }
    let read = Arc::new(Fingerprints::parse(&text).unwrap());
    let told = in_fresh(|| compare(&read, &mut rng));
    nfnl_osf(&["-d", "-f"], &file).unwrap();
    let matched = told.unwrap().unwrap_or_else(|story| panic!("{story}"));
    assert!(matched.iter().all(|packets| *packets > 0), "{matched:?}");
}

fn nfnl_osf(options: &[&str], file: &Path) -> io::Result<()> {
    let mut command = Command::new("nfnl_osf");
    let status = command.args(options).arg(file).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// Random lines of own genres, and those of `pf.os` under one of them.
fn fingerprints(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..60 {
        let number = rng.u32(1..9);
        let window = match rng.u8(..6) {
            0 => "*".to_owned(),
            1 => format!("{}", rng.u16(1..)),
            2 => format!("S{number}"),
            3 => format!("T{number}"),
            4 => format!("%{}", number * 512),
            _ => format!("S%{number}"),
        };
        let mut options: Vec<&str> =
            ["M*", "N", "W2", "S", "T", "T0", "E", "M%4", "N", "?9"].into();
        rng.shuffle(&mut options);
        options.truncate(rng.usize(..6));
        let options = if options.is_empty() { ".".to_owned() } else { options.join(",") };
        let len: usize = 40
            + Fingerprints::parse(&format!("1:1:1:1:{options}:g:::"))
                .expect("a fingerprint")
                .all()
                .flat_map(|known| &known.options)
                .map(|(_, len)| usize::from(*len))
                .sum::<usize>();
        // Lengths of options are whole words in packets.
        if !len.is_multiple_of(4) {
            continue;
        }
        let (ttl, df) = ([32, 64, 128, 255][rng.usize(..4)], rng.u8(..2));
        let genre = GENRES[rng.usize(..3)];
        text +=
            &format!("{window}:{ttl}:{df}:{}:{options}:{genre}:1::x\n", len + rng.usize(..2) * 12);
    }
    let pf_os = fs::read_to_string(PF_OS).unwrap_or_default();
    for line in pf_os.lines().filter(|line| !line.starts_with('#')) {
        let mut fields: Vec<&str> = line.split(':').collect();
        if let [_, _, _, _, _, genre, ..] = &mut fields[..] {
            *genre = GENRES[3];
            text += &(fields.join(":") + "\n");
        }
    }
    text
}

/// How many packets each rule of the last ruleset matched, or what differs.
fn compare(read: &Arc<Fingerprints>, rng: &mut Rng) -> io::Result<Result<Vec<u64>, String>> {
    let scene = Scene::new(Family::Ipv4, Wire::Tun, Placement::Raw);
    let known: Vec<&Fingerprint> = read.all().collect();
    let mut matched = vec![0; 2];
    let mut session: Option<Session> = None;
    for _ in 0..setting("TAMIS_OSF_PACKETS", 20_000).div_ceil(BATCH) {
        let rules = rules(rng);
        match &mut session {
            None => match Session::new(scene, &rules)? {
                Ok(new) => session = Some(new),
                Err(difference) => return Ok(Err(format!("{difference}\n{rules}"))),
            },
            Some(session) => {
                if let Err(difference) = session.reload(&rules) {
                    return Ok(Err(format!("{difference}\n{rules}")));
                }
            }
        }
        let Some(session) = &mut session else { continue };
        session.stand_on(Host { fingerprints: Some(Arc::clone(read)), ..scene.host() });
        let frames: Vec<Vec<u8>> = (0..BATCH)
            .map(|number| syn(known[rng.usize(..known.len())], number as u16, rng))
            .collect();
        if let Some(difference) = session.batch(&frames)? {
            return Ok(Err(format!("{difference}\n{rules}")));
        }
        let mut asked = std::collections::BTreeMap::new();
        session.evaluator().asked(&mut asked);
        if let Some(asked) = asked.get("osf") {
            matched[0] += asked.yes;
            matched[1] += asked.asked - asked.yes;
        }
    }
    println!("osf: {} matched, {} not", matched[0], matched[1]);
    Ok(Ok(matched))
}

fn rules(rng: &mut Rng) -> String {
    let mut text = "*raw\n:PREROUTING ACCEPT [0:0]\n".to_owned();
    for _ in 0..12 {
        let bang = if rng.u8(..4) == 0 { "! " } else { "" };
        let genre = GENRES[rng.usize(..GENRES.len())];
        let ttl = ["", " --ttl 0", " --ttl 1", " --ttl 2"][rng.usize(..4)];
        let log = if rng.u8(..8) == 0 { " --log 1" } else { "" };
        let then = ["", "", "", " -j DROP"][rng.usize(..4)];
        text += &format!("-A PREROUTING -p tcp -m osf {bang}--genre {genre}{ttl}{log}{then}\n");
    }
    text + "COMMIT\n"
}

/// A SYN of a fingerprint, with one thing wrong now and then.
fn syn(known: &Fingerprint, number: u16, rng: &mut Rng) -> Vec<u8> {
    let mss: u16 = [536, 1400, 1448, 1460][rng.usize(..4)];
    let mut options = Vec::new();
    for (kind, len) in &known.options {
        options.push(*kind);
        match len {
            1 => {}
            4 => options.extend([4, (mss >> 8) as u8, mss as u8]),
            len => {
                options.push(*len);
                options.extend((2..*len).map(|_| rng.u8(..)));
            }
        }
    }
    let size = u32::from(if rng.bool() { mss } else { 1460 });
    let window = match known.window {
        Window::Any => rng.u16(..).into(),
        Window::Is(window) => window,
        Window::Segments(factor) => factor.wrapping_mul(size),
        Window::Units(factor) => factor.wrapping_mul(size + 40),
        Window::Multiple(of) => of.wrapping_mul(rng.u32(..4)),
    } as u16;
    let words = 5 + options.len().div_ceil(4);
    let mut tcp = vec![0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, (words << 4) as u8, 2];
    tcp.extend(window.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(options);
    tcp.resize(words * 4, 0);
    tcp.resize((known.len as usize).saturating_sub(20).max(tcp.len()), 0x61);
    let len = (20 + tcp.len()) as u16;
    let ttl = match rng.u8(..4) {
        0 => known.ttl.saturating_sub(rng.u8(..3)),
        1 => known.ttl.saturating_add(1),
        _ => known.ttl,
    };
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, if known.df { 0x40 } else { 0 }, 0, ttl.max(2), 6];
    packet.extend([0, 0, 198, 51, 100, 1, 203, 0, 113, 2]);
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[4..6].copy_from_slice(&number.to_be_bytes());
    packet.extend(tcp);
    if rng.u8(..4) == 0 {
        let place = [6, 12, 13, 15, 20 + 12, 20 + 13, 20 + 14, 40, 41, 44][rng.usize(..10)];
        if let Some(byte) = packet.get_mut(place) {
            *byte ^= 1 << rng.u8(..8);
        }
    }
    let sum = !packet::checksum::sum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}
