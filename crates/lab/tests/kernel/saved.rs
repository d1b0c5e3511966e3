//! `--save-counters` of a host with rules of three kinds at once, against what the kernel's own programs list after the
//! same packets: every counter of every file. Needs root, nft and the tools of both iptables; without them it says so and
//! passes.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;
use std::io;
use std::process::Command;

use conntrack::Mode;
use dataplane::Path;
use lab::oracle::kernel::Kernel;
use lab::oracle::load::restore;
use lab::oracle::netns::{feed, in_fresh};
use lab::oracle::nft::kernel::lacking;
use lab::scene::{Placement, Scene, Wire};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use pktio::pcap_file::{ClassicWriter, Precision};
use pktio::{Frame, FrameMeta, LinkType, Timestamp};
use replay::report::saved_files;
use replay::run::{self, Wanted};
use replay::walk::WalkOptions;
use rules::model::Family;
use tempfile::TempDir;

/// Tables of iptables-legacy; its filter lets all pass, at the turn of another that drops.
const LEGACY: &str = "\
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT DROP [0:0]
-A PREROUTING -p udp -m udp --dport 1000 -j DROP
-A PREROUTING -p udp
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:MARKS - [0:0]
-A FORWARD -p udp -m udp --dport 1001:1003 -j MARKS
-A POSTROUTING -m mark --mark 0x5
-A MARKS -j MARK --set-xmark 0x5/0xffffffff
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
";

const NFT: &str = "\
table inet guard {
	counter dns {
	}
	counter never {
	}
	set seen {
		type inet_service
		counter
		elements = { 1002, 1005 }
	}
	chain kept {
		counter accept
	}
	chain early {
		type filter hook forward priority filter - 5; policy accept;
		udp dport @seen counter
		udp dport 1004 counter name dns counter
		counter udp dport 1005 drop
		udp dport vmap { 1006 : drop, 1007 : jump kept }
		meta mark 0x5 counter name dns
	}
	chain late {
		type filter hook forward priority filter + 5; policy accept;
		tcp dport 443 counter drop
		counter
	}
}
";

const IPTABLES: &str = "\
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:web - [0:0]
-A FORWARD -p tcp -m multiport --dports 80,443 -j web
-A FORWARD -p udp -m udp --dport 1004:1020 -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -m mark --mark 0x5 -j ACCEPT
-A web -m comment --comment \"two words\" -j ACCEPT
COMMIT
";

#[test]
fn saved_counters_are_those_of_the_kernel_s_programs() {
    if let Some(reason) = lacking() {
        return eprintln!("SKIPPED: {reason}");
    }
    let restores = || feed(&mut Command::new("iptables-nft-restore"), "*raw\nCOMMIT\n");
    if let Err(reason) = in_fresh(restores) {
        return eprintln!("SKIPPED: {reason}");
    }
    for family in [Family::Ipv4, Family::Ipv6] {
        for listing in ["rules.nft", "nft.json"] {
            in_fresh(|| hold(family, listing)).unwrap();
        }
    }
}

/// Plays packets of a family, and compares.
fn hold(family: Family, listing: &str) -> io::Result<()> {
    let mut kernel = Kernel::new(Scene::new(family, Wire::Tun, Placement::Forward))?;
    let tool = if family == Family::Ipv6 { "ip6tables" } else { "iptables" };
    restore(family, LEGACY)?;
    feed(Command::new("nft").args(["-f", "-"]), NFT)?;
    feed(&mut Command::new(format!("{tool}-nft-restore")), IPTABLES)?;
    let host = TempDir::new()?;
    let out = TempDir::new()?;
    let list = |to: &TempDir| {
        let json = ["nft", "-j", "list", "ruleset"];
        let words = if listing == "nft.json" { &json[..] } else { &["nft", "list", "ruleset"] };
        write(to, listing, words)?;
        write(to, &format!("{tool}.save"), &[&format!("{tool}-nft-save"), "-c"])?;
        write(to, &format!("{tool}-legacy.save"), &[&format!("{tool}-legacy-save"), "-c"])
    };
    list(&host)?;
    let capture = host.path().join("c.pcap").display().to_string();
    let file = fs::File::create(&capture)?;
    let mut writer = ClassicWriter::new(file, LinkType::RAW, Precision::Nanos)?;
    for (bytes, number) in packets(family).iter().zip(1..) {
        kernel.send(bytes)?;
        let meta = FrameMeta {
            number,
            timestamp: Timestamp::from_nanos(number as i64 * 1_000_000).into(),
            wire_length: bytes.len() as u32,
            link_type: LinkType::RAW,
            ..FrameMeta::default()
        };
        writer.write(Frame { bytes, meta: &meta })?;
    }
    writer.finish()?;
    let told = out.path().display().to_string();
    replay_into(&host.path().display().to_string(), &capture, &told);
    // What the programs say now.
    let now = TempDir::new()?;
    list(&now)?;
    for name in [listing, &format!("{tool}.save"), &format!("{tool}-legacy.save")] {
        let [ours, kernels] = [&out, &now].map(|dir| fs::read_to_string(dir.path().join(name)));
        assert_eq!(compared(name, &ours?), compared(name, &kernels?), "{family:?} {name}");
    }
    Ok(())
}

fn write(to: &TempDir, name: &str, words: &[&str]) -> io::Result<()> {
    let listed = Command::new(words[0]).args(&words[1..]).output()?;
    assert!(listed.status.success(), "{words:?}: {}", String::from_utf8_lossy(&listed.stderr));
    fs::write(to.path().join(name), listed.stdout)
}

/// UDP and TCP to ports that rules ask for and to others, a connection each.
fn packets(family: Family) -> Vec<Vec<u8>> {
    let pair = match family {
        Family::Ipv6 => ["fd01::5", "2001:db8::7"],
        _ => ["10.1.0.5", "198.51.100.7"],
    };
    let [from, to] = pair.map(|text| text.parse().expect("an address"));
    let addresses = Addresses::new(from, to).expect("one family");
    let message = |number: u16| match number % 16 {
        at @ 13..16 => Message::Tcp {
            source_port: 2000 + number,
            destination_port: [80, 443, 22][usize::from(at - 13)],
            flags: Flags::SYN,
            sequence: 1,
            acknowledgement: 0,
            window: 9000,
        },
        at => Message::udp(2000 + number, 1000 + at),
    };
    let craft = |number| Craft {
        ethernet: None,
        payload_len: usize::from(number % 7),
        ..Craft::new(addresses, message(number))
    };
    (0..80).map(|number| craft(number).frame()).collect()
}

/// What `tamis replay HOST CAPTURE --save-counters DIR/` does.
fn replay_into(host: &str, capture: &str, folder: &str) {
    let walk = WalkOptions {
        path: Some(Path::Forward),
        input: Some("t0".to_owned()),
        output: Some("t1".to_owned()),
        ..WalkOptions::default()
    };
    let files = walk.open(host).unwrap();
    let setup = walk.setup(host, Mode::Kernel).unwrap();
    let captures = [capture.to_owned()];
    let report = run::replay(&files, &captures, &setup, &mut Wanted::default()).unwrap();
    assert_eq!(report.verdicts.unknown.packets, 0);
    for saved in saved_files(&files) {
        let path = format!("{folder}/{}", saved.name);
        fs::write(path, report.saved_file(saved).unwrap()).unwrap();
    }
}

/// The lines to compare: tables of save text by their names, as each program has an order of its own, without what is not
/// counted; listings as one program prints them, without the counters of elements.
fn compared(name: &str, text: &str) -> Vec<String> {
    if !name.ends_with(".save") {
        return listed(name, text).lines().map(str::to_owned).collect();
    }
    let mut table = "";
    let mut lines = Vec::new();
    // The stack says something by itself (MLD), which goes no further than the first chain of OUTPUT.
    let counts = |line: &&str| !line.starts_with('#') && !line.starts_with(":OUTPUT ");
    for line in text.lines().filter(counts) {
        table = if line.starts_with('*') { line } else { table };
        let is_idle = name.ends_with("-legacy.save") && table == "*filter";
        lines.push(if is_idle { "idle".to_owned() } else { format!("{table} {line}") });
    }
    lines.sort();
    lines
}

fn listed(name: &str, text: &str) -> String {
    let mut ruleset = match name {
        "nft.json" => nft::json::read::ruleset(text).unwrap(),
        _ => nft::text::parse(name, text, &|_| Err(String::new())).unwrap(),
    };
    let sets = ruleset.tables.iter_mut().flat_map(|table| &mut table.sets);
    for element in sets.flat_map(|set| &mut set.elements) {
        element.stmts.clear();
    }
    nft::text::print::ruleset(&ruleset, Default::default())
}
