//! Runs from configurations: captures that a middlebox changes nothing of are the same byte for byte, and what is refused.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use live::{DroppedPrivileges, Middlebox, Polled};
use pktio::pcap_file::NgWriter;
use pktio::{Frame, FrameMeta, InProcess, Interface, LinkType, Opener, Timestamp};

use super::super::filter;
use super::super::settings::Folder;
use super::super::workers::{TRACKED, conversations};
use super::descriptors::room;
use super::{passes, poll};

const CONFIG: &str = "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"in.pcap\"\nout = \"back.pcap\"\n\
    [[port]]\nname = \"right\"\nkind = \"pcap\"\nout = \"out.pcap\"\n\
    [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n";

/// A folder with a capture, rules and nothing else.
fn folder(test: &str) -> Folder {
    let folder = Folder::new(test);
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    let interface = Interface { name: None, link_type: LinkType::ETHERNET, snaplen: 0 };
    writer.add_interface(&interface).unwrap();
    for (number, bytes) in (1..).zip(&conversations(11, None)[..1000]) {
        write(&mut writer, number, bytes);
    }
    folder.write("in.pcap", writer.finish().unwrap());
    folder.write(
        "rules.v4",
        filter(
            "DROP",
            &format!("-A FORWARD -s 10.0.0.0/28 -p udp --dport 53 -j REJECT\n{TRACKED}"),
        ),
    );
    folder
}

fn write(writer: &mut NgWriter<Vec<u8>>, number: u64, bytes: &[u8]) {
    let timestamp = Some(Timestamp::from_nanos(1_000_000_000_000 + number as i64));
    let (link_type, wire_length) = (LinkType::ETHERNET, bytes.len() as u32);
    let meta = FrameMeta { link_type, wire_length, timestamp, ..FrameMeta::default() };
    writer.write(0, Frame { bytes, meta: &meta }, None).unwrap();
}

/// How a run is started.
#[derive(Clone, Copy)]
enum How {
    Alone,
    With,
    Hosted(usize),
}

/// The captures that each port wrote.
fn run(folder: &Folder, config: &str, how: How) -> [Vec<u8>; 2] {
    let opener: Arc<dyn Opener> = Arc::new(InProcess);
    let opened = live::open(&folder.settings(config), &opener, &mut ()).expect("a run to be");
    let mut make = |_| Box::new(passes()) as Box<dyn Middlebox>;
    let (run, hosted) = match how {
        How::Alone => (opened.start(DroppedPrivileges::default()).unwrap(), Vec::new()),
        How::With => {
            (opened.start_with(DroppedPrivileges::default(), &mut make).unwrap(), Vec::new())
        }
        How::Hosted(burst) => opened.start_hosted(DroppedPrivileges::default(), burst).unwrap(),
    };
    let poll = |hosted| thread::spawn(move || poll(hosted, |_: &mut [_]| {}));
    let threads: Vec<_> = hosted.into_iter().map(poll).collect();
    let (status, ended) = run.wait(&AtomicBool::new(false), |told| panic!("{told}"));
    threads.into_iter().for_each(|thread| thread.join().expect("it polls to the end"));
    assert!(ended.is_ok() && status.directions.iter().all(|one| one.frames.balances()));
    ["out.pcap", "back.pcap"].map(|name| fs::read(folder.0.join(name)).unwrap())
}

#[test]
fn captures_are_the_same_byte_for_byte() {
    let folder = folder("live-middlebox-captures");
    let expected = run(&folder, CONFIG, How::Alone);
    assert!(
        expected.iter().all(|bytes| bytes.len() > 1000),
        "{:?}",
        expected.map(|bytes| bytes.len())
    );
    for place in ["", "[middlebox]\n", "[middlebox]\nplace = \"before\"\n"] {
        for how in [How::With, How::Hosted(5), How::Hosted(256)] {
            let found = run(&folder, &format!("{CONFIG}{place}"), how);
            assert!(found == expected, "{place:?}");
        }
    }
    for side in ["after", "before"] {
        for (ring, burst) in [(1, 5), (7, 5), (300, 256), (4096, 64)] {
            let ring = format!("[middlebox]\nplace = \"{side}\"\nring = {ring}\n");
            let found = run(&folder, &format!("{CONFIG}{ring}"), How::Hosted(burst));
            assert!(found == expected, "{ring}");
        }
    }
}

/// A middlebox in the workers' own threads has no ring.
#[test]
fn a_ring_is_for_those_who_poll() {
    let folder = folder("live-middlebox-no-ring");
    let settings = folder.settings(&format!("{CONFIG}[middlebox]\nring = 64\n"));
    let opener: Arc<dyn Opener> = Arc::new(InProcess);
    let opened = live::open(&settings, &opener, &mut ()).expect("a run to be");
    let mut make = |_| Box::new(passes()) as Box<dyn Middlebox>;
    let error =
        opened.start_with(DroppedPrivileges::default(), &mut make).expect_err("a ring").to_string();
    let expected =
        "live.toml:14:1: expected no ring: this middlebox sees frames in the workers' own threads";
    assert_eq!(folder.within(&error), expected);
}

/// In a capture there is room between frames, which belongs to one of them alone.
#[test]
fn no_two_frames_of_a_capture_share_room() {
    let folder = folder("live-middlebox-room");
    let opener: Arc<dyn Opener> = Arc::new(InProcess);
    // As they were read: what rules make of fragments lies elsewhere.
    let before = folder.settings(&format!("{CONFIG}[middlebox]\nplace = \"before\"\n"));
    let opened = live::open(&before, &opener, &mut ()).expect("a run to be");
    let (run, mut hosted) = opened.start_hosted(DroppedPrivileges::default(), 64).unwrap();
    let mut hosted = hosted.pop().expect("a worker");
    assert_eq!(hosted.poll(Duration::from_secs(60)), Polled::Frames(64));
    let shown = hosted.descriptors();
    assert!(shown.iter().all(|one| one.headroom > 0));
    let mut ranges: Vec<_> = shown.iter().map(room).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|two| two[0].1 <= two[1].0), "{ranges:?}");
    let polling = thread::spawn(move || poll(hosted, |_: &mut [_]| {}));
    assert!(run.wait(&AtomicBool::new(false), |_| {}).1.is_ok());
    polling.join().expect("it polls to the end");
}

/// The errors about a configuration, without the name of its folder.
fn refused(folder: &Folder, config: &str) -> [String; 2] {
    let settings = folder.settings(config);
    let opener: Arc<dyn Opener> = Arc::new(InProcess);
    let opened = live::open(&settings, &opener, &mut ()).map(|opened| {
        opened.start_hosted(DroppedPrivileges::default(), 8).expect_err("no order").to_string()
    });
    let checked = live::check(&settings).map_or_else(|error| error.to_string(), |_| String::new());
    [checked, opened.unwrap_or_else(|error| error.to_string())].map(|line| folder.within(&line))
}

#[test]
fn wires_whose_order_several_workers_keep_are_refused() {
    let folder = folder("live-middlebox-ordered");
    let several = "scheme = \"ordered\"\n[rules]";
    let ordered = CONFIG.replace("[rules]", several) + "[workers]\ncount = 2\n";
    let expected = "live.toml:10:1: expected order = \"flow\": several workers keep the order of this \
                    wire, and then no middlebox sees its frames";
    assert_eq!(refused(&folder, &format!("{ordered}[middlebox]\n")), [expected; 2]);
    // What a program adds to a configuration that says nothing of it is held to the same.
    assert_eq!(refused(&folder, &ordered), ["", expected]);
}

#[test]
fn nothing_starts_by_itself_that_needs_a_middlebox() {
    let folder = folder("live-middlebox-alone");
    let settings = folder.settings(&format!("{CONFIG}[middlebox]\n"));
    assert!(live::check(&settings).is_ok());
    let opener: Arc<dyn Opener> = Arc::new(InProcess);
    let opened = live::open(&settings, &opener, &mut ()).expect("a run to be");
    let error =
        opened.start(DroppedPrivileges::default()).expect_err("nobody sees frames").to_string();
    let expected = "live.toml:14:1: a middlebox sees frames in a program that has one: nothing here does \
         (kind = \"java\" names one)";
    assert_eq!(folder.within(&error), expected);
}
