//! `kill -9` at random points of a stream of applies, a full disk, and traffic while rules change.
//!
//! A slice of each here; `make kill` has all of it (`TAMIS_KILLS=1000`).

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use live::{Request, ask};
use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, Interface, LinkType, Timestamp};
use serde_json::Value;

use crate::ran::{Scratch, TAMIS};
use crate::started::started;

/// The rules that revision `number` has.
fn rules(number: u64) -> String {
    let rules: String = (0..number % 40)
        .map(|rule| format!("-A FORWARD -s 10.{number}.0.{rule}/32 -j DROP\n"))
        .collect();
    format!(
        "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m comment --comment r{number}\n{rules}COMMIT\n"
    )
    .replace(&format!("10.{number}"), &format!("10.{}", number % 256))
}

fn folder(test: &str) -> (Scratch, String) {
    let folder = Scratch::new(test);
    folder.write("rules.v4", rules(1));
    let config = folder.write(
        "live.toml",
        "[[port]]\nname = \"left\"\nkind = \"loopback\"\n[[port]]\nname = \"right\"\nkind = \"loopback\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\nipset = \"sets\"\n\
         [control]\nsocket = \"c\"\njournal = \"journal\"\n",
    );
    folder.write("sets", "create s hash:ip family inet hashsize 1024 maxelem 65536\n");
    (folder, config)
}

fn apply(text: String) -> Request {
    Request::Apply {
        text,
        name: String::new(),
        family: None,
        noflush: false,
        if_rev: None,
        dry_run: false,
        confirm: None,
    }
}

/// The revision in force, whose rules are as they were given.
fn found(socket: &Path) -> u64 {
    let answer = ask(socket, &Request::Get { revision: None }).unwrap().unwrap();
    let number = answer["revision"].as_u64().unwrap();
    let text = answer["text"].as_str().unwrap();
    assert!(text.ends_with(&rules(number)), "revision {number}: {text}");
    number
}

/// How many there were of each when they were last acknowledged.
#[derive(Default)]
struct Acknowledged {
    revision: AtomicU64,
    bans: AtomicU64,
    elements: AtomicU64,
}

/// Address `number`, with others before the next one, so that ranges do not become one.
fn address(number: u64) -> String {
    format!("10.{}.{}.{}", number >> 15, (number >> 7) & 255, (number << 1) & 255)
}

fn ban(text: String) -> Request {
    Request::Bans { text, action: None, line: 1 }
}

/// Applies, bans and adds until the run has ended.
fn changing(socket: &Path, acknowledged: &Acknowledged) {
    let Acknowledged { revision, bans, elements } = acknowledged;
    loop {
        let next = revision.load(Relaxed) + 1;
        let Ok(answer) = ask(socket, &apply(rules(next))) else { return };
        assert_eq!(answer.unwrap()["revision"], next);
        revision.store(next, Relaxed);
        let next = bans.load(Relaxed) + 1;
        let Ok(answer) = ask(socket, &ban(format!("ban {}", address(next)))) else { return };
        assert_eq!(answer.unwrap()["banned_ranges"], next);
        bans.store(next, Relaxed);
        let next = elements.load(Relaxed) + 1;
        let text = format!("add s {}", address(next));
        let Ok(answer) = ask(socket, &Request::SetsRestore { text, line: 1 }) else { return };
        assert_eq!(answer.unwrap()["added"], 1);
        elements.store(next, Relaxed);
    }
}

/// Asserts that what is in force was acknowledged, or is the one change that was not; returns the number of
/// unacknowledged changes.
fn hold(acknowledged: &AtomicU64, found: u64, what: &str) -> u64 {
    let before = acknowledged.swap(found, Relaxed);
    assert!(found == before || found == before + 1, "{what}: {before}, found {found}");
    found - before
}

pub(crate) fn times(one_of_many: u64) -> u64 {
    std::env::var("TAMIS_KILLS").map_or(one_of_many, |times| times.parse().unwrap())
}

#[test]
fn kills_at_random_points_lose_nothing_acknowledged() {
    let (folder, config) = folder("killed");
    let socket = folder.path().join("c");
    let acknowledged = Acknowledged { revision: AtomicU64::new(1), ..Acknowledged::default() };
    let (mut draw, mut late) = (0x9e37_79b9_7f4a_7c15_u64, 0);
    for kill in 0..times(8) {
        let run = started(&config);
        late += hold(&acknowledged.revision, found(&socket), &format!("kill {kill}, revision"));
        let bans = ask(&socket, &ban(String::new())).unwrap().unwrap();
        let bans = bans["banned_ranges"].as_u64().unwrap();
        late += hold(&acknowledged.bans, bans, &format!("kill {kill}, bans"));
        let sets = ask(&socket, &Request::SetsList { set: None, most: 0 }).unwrap().unwrap();
        let elements = sets["sets"][0]["entries"].as_u64().unwrap();
        late += hold(&acknowledged.elements, elements, &format!("kill {kill}, elements"));
        std::thread::scope(|scope| {
            scope.spawn(|| changing(&socket, &acknowledged));
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(Duration::from_micros((draw >> 33) % 60_000));
            run.kill();
        });
    }
    let [number, bans] = [&acknowledged.revision, &acknowledged.bans].map(|of| of.load(Relaxed));
    assert!(number > 1 && bans > 0, "nothing was changed");
    eprintln!("{number} revisions, {bans} bans, {late} changes in force that nobody was told of");
}

/// Files may not grow any further: as on a full disk, without being root.
#[test]
fn a_full_disk_loses_nothing_acknowledged() {
    for run in 0..times(3).min(100) {
        let (folder, config) = folder(&format!("killed-full-{run}"));
        let socket = folder.path().join("c");
        // So that the journal is there before the disk is full.
        let first = started(&config);
        // A run that ends may do so before it has answered.
        let _ = ask(&socket, &Request::Stop {});
        first.ended();
        let length = std::fs::metadata(folder.file("journal/tamis.redb")).unwrap().len();
        let blocks = length / 512 + 40 * run;
        let shell = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" run \"$1\"");
        let mut command = Command::new("sh");
        command.arg("-c").arg(shell).args([TAMIS, &config]).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while ask(&socket, &Request::Log {}).is_err() {
            assert!(Instant::now() < until, "it does not start");
        }
        // Each is longer than those before.
        let text = |rules: u64| {
            let more = "-A FORWARD -s 10.0.0.1/32 -j DROP\n".repeat(3_000 * rules as usize);
            format!("*filter\n:FORWARD ACCEPT [0:0]\n{more}COMMIT\n")
        };
        let mut last = 1;
        let refused = loop {
            match ask(&socket, &apply(text(last))).unwrap() {
                Ok(answer) => last = answer["revision"].as_u64().unwrap(),
                Err(refusal) => break refusal,
            }
            assert!(last < 60, "the disk is never full");
        };
        assert!(refused.what.contains("tamis.redb: "), "{}", refused.what);
        let get = || ask(&socket, &Request::Get { revision: None }).unwrap().unwrap();
        let in_force = get();
        assert_eq!(in_force["revision"], last);
        child.kill().unwrap();
        child.wait().unwrap();
        let again = started(&config);
        assert_eq!(get(), in_force, "run {run}");
        let answer = ask(&socket, &apply(text(last))).unwrap().unwrap();
        assert_eq!(answer["revision"], last + 1);
        // A run that ends may do so before it has answered.
        let _ = ask(&socket, &Request::Stop {});
        again.ended();
    }
}

/// Frames of a capture that take this long.
const FRAMES: u64 = 20_000;
const SECONDS: u64 = 2;

/// Each revision marks packets with its own number, and drops packets that another one has marked: a packet that met
/// two revisions would be dropped.
fn marking(number: u64) -> String {
    format!(
        "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j MARK --set-xmark {number:#x}/0xffffffff\nCOMMIT\n\
         *filter\n:FORWARD DROP [0:0]\n-A FORWARD -m mark ! --mark {number:#x} -j DROP\n\
         -A FORWARD -j ACCEPT\nCOMMIT\n"
    )
}

/// A capture of a packet that comes again and again.
fn capture(folder: &Scratch) {
    let frame = replay::spec::parse("udp 10.0.0.1:1000 > 10.0.0.2:53").unwrap().frame;
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    let interface = Interface { link_type: LinkType::ETHERNET, ..Interface::default() };
    writer.add_interface(&interface).unwrap();
    for number in 0..FRAMES {
        let timestamp = Timestamp::from_nanos((number * SECONDS * 1_000_000_000 / FRAMES) as i64);
        let wire_length = frame.len() as u32;
        let meta = FrameMeta { wire_length, timestamp: Some(timestamp), ..FrameMeta::default() };
        writer.write(0, Frame { bytes: &frame, meta: &meta }, None).unwrap();
    }
    folder.write("in.pcap", writer.finish().unwrap());
}

#[test]
fn no_packet_meets_two_revisions_and_none_is_lost() {
    let (folder, config) = folder("killed-marks");
    capture(&folder);
    folder.write("rules.v4", marking(1));
    let text = std::fs::read_to_string(&config).unwrap();
    let left = "kind = \"pcap\"\nfile = \"in.pcap\"\npace = \"capture\"";
    folder.write("live.toml", text.replacen("kind = \"loopback\"", left, 1));
    let socket = folder.path().join("c");
    let mut command = Command::new(TAMIS);
    let child = command.args(["run", &config, "--json"]).stdout(Stdio::piped());
    let child = child.stderr(Stdio::null()).spawn().unwrap();
    while ask(&socket, &Request::Log {}).is_err() {}
    let asked = |request: &Request| ask(&socket, request).unwrap().unwrap();
    let mut last = 1;
    let status = loop {
        last = asked(&apply(marking(last + 1)))["revision"].as_u64().unwrap();
        let status = asked(&Request::Status {});
        let is_all = |wire: &Value| wire["received"] == FRAMES && wire["queue"].is_null();
        if status["wires"].as_array().unwrap().iter().all(is_all) {
            break status;
        }
    };
    let counters = asked(&Request::Counters { save: false });
    asked(&Request::Stop {});
    child.wait_with_output().unwrap();
    // What comes back from the right has been marked by one revision, and is by another: each is a packet of its own.
    for wire in status["wires"].as_array().unwrap() {
        assert_eq!(wire["received"], FRAMES, "{status}");
        assert_eq!(wire["dropped"].to_string(), "{}", "{status}");
    }
    assert!(last > 10, "{last} revisions were in force");
    // The rule that stays has counted on over all of them.
    let rules = counters["rules"].as_array().unwrap();
    let stays = rules.iter().find(|rule| rule["text"] == "-A FORWARD -j ACCEPT").unwrap();
    assert_eq!(stays["packets"], 2 * FRAMES, "{counters}");
}
