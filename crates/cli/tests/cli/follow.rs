//! `tamis replay --follow`: packets are shown as they come, whatever comes after them, and the report at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pktio::pcap_file::NgWriter;
use pktio::{Direction, Frame, FrameMeta, Interface, LinkType, Timestamp};

use crate::ran::{CAPTURE, RULES, Scratch, TAMIS, skipped, tamis};

const FILTER: &str = "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n\
    -A FORWARD -p udp -m udp --dport 53 -j ACCEPT\n\
    -A FORWARD -m geoip --source-country DE -j ACCEPT\nCOMMIT\n";

/// The pieces of a pcapng of datagrams to these ports: its head, then a block for each. They are a millisecond apart
/// and each says that it came in, so a replay that reads ahead holds them back.
fn pieces(ports: &[u16]) -> Vec<Vec<u8>> {
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    let interface = Interface { link_type: LinkType::ETHERNET, ..Interface::default() };
    writer.add_interface(&interface).unwrap();
    let mut ends = Vec::new();
    let mut whole = |writer: NgWriter<Vec<u8>>| {
        let bytes = writer.finish().unwrap();
        ends.push(bytes.len());
        NgWriter::resume(bytes, 1)
    };
    writer = whole(writer);
    for (number, port) in (0..).zip(ports) {
        let spec = format!("udp 198.51.100.7:4000 > 10.0.0.9:{port}");
        let bytes = replay::spec::parse(&spec).unwrap().frame;
        let time = Timestamp::from_nanos(1_795_255_200_000_000_000 + number * 1_000_000);
        let (timestamp, direction) = (Some(time), Direction::Inbound);
        let wire_length = bytes.len() as u32;
        let meta = FrameMeta { timestamp, direction, wire_length, ..FrameMeta::default() };
        writer.write(0, Frame { bytes: &bytes, meta: &meta }, None).unwrap();
        writer = whole(writer);
    }
    let bytes = writer.finish().unwrap();
    let starts = [0].into_iter().chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| bytes[start..*end].to_vec()).collect()
}

/// A replay that follows, for a minute at most.
struct Followed {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Followed {
    fn new(args: &[&str]) -> (Self, ChildStdin) {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "60", TAMIS, "replay", "--follow"]).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        (Self { child, out: BufReader::new(out) }, input)
    }

    /// The next line, without its end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What else it says, what on standard error, and its exit code.
    fn end(mut self) -> (String, String, Option<i32>) {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (out, err, self.child.wait().unwrap().code())
    }
}

#[test]
fn a_packet_is_shown_before_the_next_one_is_written() {
    let scratch = Scratch::new("follow");
    let rules = scratch.write("rules.v4", FILTER);
    let pieces = pieces(&[53, 80, 53]);
    let (mut followed, mut input) = Followed::new(&[&rules, "-", "--path", "forward"]);
    input.write_all(&pieces[0]).unwrap();
    let accept = "  by L4 -A FORWARD -p udp -m udp --dport 53 -j ACCEPT";
    let unknown = "  L5 depends on -m geoip";
    for (number, (piece, end)) in (1..).zip(pieces[1..].iter().zip([accept, unknown, accept])) {
        input.write_all(piece).unwrap();
        let line = followed.line();
        assert!(line.starts_with(&format!("#{number} ")), "{line}");
        assert!(line.contains(": udp 198.51.100.7:4000 > 10.0.0.9:"), "{line}");
        assert!(line.contains(end), "{line}");
    }
    // Half of a record, and nothing more.
    input.write_all(&pieces[1][..pieces[1].len() / 2]).unwrap();
    drop(input);
    let (report, err, code) = followed.end();
    assert!(report.starts_with('\n') && report.contains("VERDICT"), "{report}");
    assert!(report.contains("3 packets") && report.contains("warning   <stdin>: "), "{report}");
    assert_eq!((err.as_str(), code), ("", Some(0)));
}

/// Words of packets, in their order: the same as without.
#[test]
fn verdicts_are_those_of_a_replay_that_is_not_followed() {
    let scratch = Scratch::new("follow-same");
    let words = scratch.file("verdicts");
    let replayed = |more: &[&str]| {
        let nets = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];
        tamis(&[&["replay", RULES, CAPTURE], &nets[..], more].concat())
    };
    let plain = replayed(&["--verdicts", &words]);
    let followed = replayed(&["--follow"]);
    let (lines, report) = followed.out.split_once("\n\n").unwrap();
    let word = |line: &str| line.split([' ', ':']).nth(1).unwrap().to_owned() + "\n";
    assert_eq!(lines.lines().map(word).collect::<String>(), fs::read_to_string(&words).unwrap());
    // But for the time that it took.
    let timeless = |report: &str| {
        let is_timed = |line: &&str| line.contains("packets/s") || line.starts_with("next:");
        report.lines().filter(|line| !is_timed(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(timeless(report), timeless(&plain.out));
    let dropped = replayed(&["--follow", "--list", "drop"]);
    let (dropped, _) = dropped.out.split_once("\n\n").unwrap();
    let drops = |line: &&str| line.contains(" drop: ");
    assert!(!dropped.is_empty());
    assert_eq!(dropped, lines.lines().filter(drops).collect::<Vec<_>>().join("\n"));
}

#[test]
fn json_lines_come_as_packets_do() {
    let scratch = Scratch::new("follow-json");
    let rules = scratch.write("rules.v4", FILTER);
    let pieces = pieces(&[53, 80]);
    let (mut followed, mut input) = Followed::new(&[&rules, "-", "--packets", "-"]);
    input.write_all(&pieces[0]).unwrap();
    for (number, piece) in (1..).zip(&pieces[1..]) {
        input.write_all(piece).unwrap();
        let line: serde_json::Value = serde_json::from_str(&followed.line()).unwrap();
        assert_eq!(line["frame"], number);
    }
    drop(input);
    assert_eq!(followed.end().2, Some(0));
    let (followed, mut input) = Followed::new(&[&rules, "-", "--json"]);
    input.write_all(&pieces.concat()).unwrap();
    drop(input);
    let document: serde_json::Value = serde_json::from_str(&followed.end().0).unwrap();
    assert_eq!(document["packets"], 2, "one document and nothing else");
}

#[test]
fn a_fifo_is_followed_and_a_signal_ends_it() {
    let scratch = Scratch::new("follow-fifo");
    let (rules, fifo) = (scratch.write("rules.v4", FILTER), scratch.file("fifo"));
    if !Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()) {
        return skipped("following a FIFO: no mkfifo(1)");
    }
    let (mut followed, _input) = Followed::new(&[&rules, &fifo]);
    let mut writer: File = OpenOptions::new().write(true).open(&fifo).unwrap();
    writer.write_all(&pieces(&[53]).concat()).unwrap();
    assert!(followed.line().starts_with("#1 "));
    // What timeout gets it hands on.
    let kill = Command::new("kill").args(["-INT", &followed.child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let (report, _, _) = followed.end();
    assert!(report.contains("VERDICT") && report.contains("1 packet"), "{report}");
}

#[test]
fn a_reader_that_is_gone_ends_it_quietly() {
    let scratch = Scratch::new("follow-closed");
    let rules = scratch.write("rules.v4", FILTER);
    let pieces = pieces(&[53, 53]);
    let (followed, mut input) = Followed::new(&[&rules, "-"]);
    let Followed { mut child, out } = followed;
    drop(out);
    input.write_all(&pieces.concat()).unwrap();
    // Its input stays open.
    let output = child.wait().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((output.code(), err.as_str()), (Some(130), ""));
    drop(input);
}

#[test]
fn what_does_not_go_with_it_is_said() {
    let ran = tamis(&["replay", RULES, CAPTURE, CAPTURE, "--follow"]);
    assert_eq!(ran.refusal(), "--follow: expected one CAPTURE, found 2");
    let ran = tamis(&["replay", RULES, CAPTURE, "--follow", "--list", "drop", "--limit", "3"]);
    assert_eq!(ran.code, Some(2));
    let ran = tamis(&["replay", RULES, CAPTURE, "--follow", "-j", "2"]);
    assert!(ran.err.starts_with("tamis: -j 2: one worker evaluates: "), "{}", ran.err);
    assert_eq!(ran.code, Some(0));
}

/// With tcpdump, in a network namespace that goes with the shell. Needs root.
#[test]
fn tcpdump_is_followed() {
    const SCRIPT: &str = r#"
        ip link set lo up
        (tcpdump -i lo -U -w - udp 2> err & echo $! > pid; wait $!) | "$0" replay rules.v4 - --follow &
        until grep -q listening err; do sleep 0.1; done
        while read -r port; do echo x > /dev/udp/127.0.0.1/$port; done
        kill -INT $(cat pid)
        wait"#;
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let may = Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|s| s.success());
    if !(may && has("tcpdump") && has("bash")) {
        return skipped("following tcpdump: needs root, tcpdump and bash");
    }
    let scratch = Scratch::new("follow-tcpdump");
    let rules = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p udp -m udp --dport 53 -j ACCEPT\nCOMMIT\n";
    scratch.write("rules.v4", rules);
    let mut command = Command::new("timeout");
    command.args(["60", "unshare", "-n", "bash", "-c", SCRIPT, TAMIS]);
    command.current_dir(scratch.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut ports = child.stdin.take().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut followed = Followed { child, out };
    for (number, port, word) in [(1, 53, "accept"), (2, 54, "drop"), (3, 53, "accept")] {
        writeln!(ports, "{port}").unwrap();
        let line = followed.line();
        assert!(line.starts_with(&format!("#{number} {word}: udp 127.0.0.1:")), "{line}");
    }
    drop(ports);
    let (report, _, code) = followed.end();
    assert!(report.contains("3 packets") && code == Some(0), "{code:?} {report}");
}
