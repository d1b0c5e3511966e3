//! `tamis run` and `tamis ctl`: from capture to capture, checked, watched and stopped.

use std::process::Command;

use serde_json::Value;

use crate::ran::{Scratch, skipped, tamis};
use crate::started::started;

const RULES: &str =
    "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i left -p tcp --dport 80 -j ACCEPT\nCOMMIT\n";
const SPECS: [&str; 3] = [
    "tcp 10.0.0.7:40000 > 10.0.0.9:80 syn",
    "tcp 10.0.0.7:40001 > 10.0.0.9:22 syn ttl=1",
    "tcp 10.0.0.7:40002 > 10.0.0.9:80 syn ttl=1",
];

/// A folder with rules, a capture, and a configuration that passes the one by the other.
fn folder(test: &str) -> (Scratch, String) {
    let folder = Scratch::new(test);
    folder.write("rules.v4", RULES);
    folder.capture("in.pcap", "eth0", &SPECS);
    let config = folder.write(
        "live.toml",
        "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"in.pcap\"\n\
         [[port]]\nname = \"right\"\nkind = \"pcap\"\nout = \"out.pcap\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n",
    );
    (folder, config)
}

#[test]
fn a_capture_goes_through_the_rules_into_another() {
    let (folder, config) = folder("live-run");
    let checked = tamis(&["run", &config, "--check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    assert!(checked.err.contains("warning: ") && checked.err.contains("ip6: no rules are given"));
    assert_eq!(checked.out, format!("{config}: ports 2, wires 1\nnext: tamis run {config}\n"));
    assert!(!std::path::Path::new(&folder.file("out.pcap")).exists());

    let ran = tamis(&["run", &config, "--json"]);
    assert_eq!(ran.err.lines().last(), Some("ready"));
    let status = ran.json();
    assert_eq!(status["schema"], "tamis.status/1");
    let wire = &status["wires"][0];
    let counts = ["received", "made", "sent"].map(|key| wire[key].as_u64());
    assert_eq!(counts, [Some(3), Some(0), Some(2)]);
    assert_eq!(wire["dropped"].to_string(), "{\"policy\":1}");

    // What left is what was accepted, as it came.
    let accepts = folder.write("accepts.v4", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    let lines = |capture: &str| {
        let file = folder.file("lines.json");
        let args = ["replay", &accepts, capture, "--path", "forward", "--packets", &file];
        assert_eq!(tamis(&args).code, Some(0));
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["tuple"].clone()).collect::<Vec<_>>()
    };
    let (came, left) = (lines(&folder.file("in.pcap")), lines(&folder.file("out.pcap")));
    assert_eq!(left, [came[0].clone(), came[2].clone()]);
    let text = tamis(&["run", &config]);
    assert_eq!(
        text.out.lines().next(),
        Some("left > right: received 3, made 0, sent 2, dropped: policy 1")
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let (folder, config) = folder("live-wrong");
    let text = std::fs::read_to_string(&config).unwrap();
    folder.write("live.toml", text.replace("\"pcap\"\nfile", "\"wifi\"\nfile"));
    let line = tamis(&["run", &config]);
    assert!(line.refusal().contains("live.toml:3:8: expected one of af_packet"), "{}", line.err);
    folder.write("live.toml", text.replace("rules.v4", "none.v4"));
    let line = tamis(&["run", &config, "--check"]);
    assert!(line.refusal().ends_with("none.v4: No such file or directory"), "{}", line.err);
    assert!(
        tamis(&["run", &folder.file("none.toml")]).refusal().ends_with("No such file or directory")
    );
}

#[test]
fn a_run_is_asked_and_stopped_by_its_socket_or_a_signal() {
    let (folder, config) = folder("live-ctl");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("kind = \"pcap\"\nout = \"out.pcap\"", "kind = \"loopback\"");
    folder.write("live.toml", format!("{text}[control]\nsocket = \"c\"\n"));
    let socket = folder.file("c");
    let ctl = |args: &[&str]| tamis(&[&["ctl", "--socket", &socket], args].concat());

    let run = started(&config);
    // Two frames go to the right and come back, where no rule accepts them.
    while ctl(&["--json", "status"]).json()["wires"][1]["received"] != 2 {}
    let saved = ctl(&["counters", "--save"]).out;
    assert_eq!(
        saved,
        RULES
            .replace("DROP [0:0]", "DROP [3:120]")
            .replace("-A", "[2:80] -A")
            .replace("-p tcp", "-p tcp -m tcp")
    );
    assert_eq!(
        ctl(&["counters"]).out.split_whitespace().take(4).collect::<Vec<_>>(),
        ["2", "80", "ip", "filter"]
    );
    assert_eq!(tamis(&["run", &config]).code, Some(1), "the socket is taken");
    let stopped = ctl(&["stop"]);
    assert_eq!((stopped.code, &*stopped.out), (Some(0), "stopping\n"));
    let ran = run.ended();
    assert_eq!((ran.code, ran.out.matches(" > ").count()), (Some(0), 2), "{}", ran.err);
    assert!(!std::path::Path::new(&socket).exists());
    let nobody = ctl(&["status"]);
    assert!(nobody.refusal().contains("no run listens there"), "{}", nobody.err);

    let run = started(&config);
    let pid = run.pid().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(run.ended().code, Some(0));
}

/// The last frames of a capture that is written are in a buffer, and a disk may be full by then.
#[test]
fn a_capture_that_cannot_be_written_to_its_end_is_told() {
    let (folder, config) = folder("live-full");
    let text = std::fs::read_to_string(&config).unwrap();
    if !std::path::Path::new("/dev/full").exists() {
        return skipped("there is no /dev/full");
    }
    folder.write("live.toml", text.replace("\"out.pcap\"", "\"/dev/full\""));
    let ran = tamis(&["run", &config]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("tamis: /dev/full: byte 108: No space left"), "{}", ran.err);
    // Also where several workers share the port.
    let text = text.replace("\"out.pcap\"", "\"/dev/full\"");
    folder.write("live.toml", format!("{text}[workers]\ncount = 2\n"));
    let ran = tamis(&["run", &config]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("tamis: /dev/full: byte 108: No space left"), "{}", ran.err);
}

#[test]
fn a_capture_comes_at_its_pace_and_all_of_it() {
    let (folder, config) = folder("live-paced");
    let text = std::fs::read_to_string(&config).unwrap();
    let paced = "file = \"in.pcap\"\npace = \"capture\"\nspeed = 1000";
    folder.write("live.toml", text.replace("file = \"in.pcap\"", paced));
    let status = tamis(&["run", &config, "--json"]).json();
    assert_eq!(status["wires"][0]["received"], 3);
}

#[test]
fn files_are_read_anew_on_sighup_and_a_bad_one_changes_nothing() {
    let (folder, config) = folder("live-reload");
    folder.write("bans.txt", "");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("kind = \"pcap\"\nout = \"out.pcap\"", "kind = \"loopback\"");
    folder.write("live.toml", format!("{text}bans = \"bans.txt\"\n[control]\nsocket = \"c\"\n"));
    let socket = folder.file("c");
    let asked =
        |args: &[&str]| tamis(&[&["ctl", "--socket", &socket, "--json"], args].concat()).json();
    let mut run = started(&config);
    let pid = run.pid().to_string();
    let hang_up = || assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let program = || asked(&["status"])["program"].as_u64();

    assert_eq!(program(), Some(1));
    folder.write("rules.v4", RULES.replace("DROP", "ACCEPT"));
    hang_up();
    while program() != Some(2) {}
    let saved = asked(&["counters", "--save"])["text"].to_string();
    assert!(saved.contains(":FORWARD ACCEPT"), "{saved}");

    folder.write("bans.txt", "- ban 10.0.0.1\n- ban 10.0.0.1/33\n");
    hang_up();
    let line = run.says("not reloaded").unwrap();
    assert!(line.contains("live.toml:12:8: "), "{line}");
    assert!(line.contains("bans.txt:2:7: expected ADDRESS or ADDRESS/BITS"), "{line}");
    assert_eq!(program(), Some(2));
    assert_eq!(tamis(&["ctl", "--socket", &socket, "stop"]).code, Some(0));
    assert_eq!(run.ended().code, Some(0));
}

#[test]
fn the_doctor_says_what_a_configuration_lacks() {
    let (folder, config) = folder("live-doctor");
    let well = tamis(&["doctor", &config, "--json"]);
    let report = well.json();
    assert_eq!((well.code, &report["schema"]), (Some(0), &"tamis.doctor/1".into()));
    let ports = report["ports"].as_array().unwrap();
    let of = |what: &str| ports.iter().find(|port| port["what"] == what).unwrap();
    assert_eq!(
        (of("pcap")["works"].clone(), of("pcap")["needed"].clone()),
        (true.into(), true.into())
    );
    assert_eq!(of("dpdk")["works"], pktio_dpdk::IS_BUILT);

    let text = std::fs::read_to_string(&config).unwrap();
    let device = "kind = \"af_packet\"\ndevice = \"no-such-device\"";
    folder.write("live.toml", text.replace("kind = \"pcap\"\nout = \"out.pcap\"", device));
    let unwell = tamis(&["doctor", &config]);
    assert_eq!(unwell.code, Some(1));
    assert!(
        unwell.out.contains("there is no interface no-such-device: name one of"),
        "{}",
        unwell.out
    );
    let checked = tamis(&["run", &config, "--check"]);
    let refusal = checked.refusal();
    assert!(refusal.contains("live.toml:8:10: expected one of the interfaces "), "{refusal}");
    assert_eq!(tamis(&["doctor"]).code, Some(0));
}

/// By those who run it, and by those who ask before.
#[test]
#[cfg(target_os = "linux")]
fn that_a_device_of_af_xdp_is_waited_for_in_vain_is_said_at_once() {
    let (folder, config) = folder("live-in-vain");
    let text = std::fs::read_to_string(&config).unwrap();
    let keep = "reopen = \"keep\"";
    let cases = [
        (keep, "", true),
        (keep, "gone = \"end\"", false),
        ("reopen = \"parent\"", "", false),
        ("drop = \"off\"\nreopen = \"keep\"", "", false),
    ];
    for (privileges, gone, is_said) in cases {
        let device = format!("kind = \"af_xdp\"\ndevice = \"lo\"\n{gone}");
        let text = text.replace("kind = \"pcap\"\nout = \"out.pcap\"", &device);
        folder.write("live.toml", format!("{text}\n[privileges]\n{privileges}\n"));
        let what = "is not opened again once it has gone and come back";
        let checked = tamis(&["run", &config, "--check"]);
        assert_eq!(checked.code, Some(0), "{}", checked.err);
        let line = checked.err.lines().find(|line| line.contains(what));
        let has_place = line.is_some_and(|line| line.contains("live.toml:8: lo is not"));
        assert_eq!(has_place, is_said, "{privileges} {gone}: {}", checked.err);
        let examined = tamis(&["doctor", &config]).out;
        let line = examined.lines().find(|line| line.starts_with("reopen lo "));
        assert_eq!(line.is_some_and(|line| line.contains(what)), is_said, "{gone}: {examined}");
    }
}
