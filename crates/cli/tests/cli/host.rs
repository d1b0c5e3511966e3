//! A host as one argument, and `tamis collect`, which writes it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::command::{Bench, ethernet, refusal, report, stdout, tamis};

const V4: &str = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n\
                  -A FORWARD -p tcp -m set --match-set good src -j ACCEPT\nCOMMIT\n";
const V6: &str = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -j DROP\nCOMMIT\n";
const SETS: &str =
    "create good hash:ip family inet hashsize 1024 maxelem 65536\nadd good 198.51.100.7\n";
const PACKETS: [&str; 3] = [
    "tcp 198.51.100.7:51200 > 10.0.0.9:22 syn",
    "tcp 198.51.100.8:51200 > 10.0.0.9:22 syn",
    "udp [2001:db8::1]:53 > [2001:db8::2]:4000",
];

/// A folder `fw` of these files, and its name.
pub(crate) fn folder(bench: &Bench, files: &[(&str, &str)]) -> String {
    let dir = bench.path("fw");
    fs::create_dir_all(&dir).unwrap();
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
    dir.display().to_string()
}

fn usual(bench: &Bench) -> String {
    folder(
        bench,
        &[
            ("iptables.save", V4),
            ("ip6tables.save", V6),
            ("ebtables.save", ""),
            ("ipset.save", SETS),
            ("notes.md", "mine"),
        ],
    )
}

#[test]
fn a_folder_is_rules_and_sets_and_the_rest() {
    let bench = Bench::new();
    let (host, capture) = (usual(&bench), bench.capture("c.pcapng", &PACKETS));
    let json = report(0, &["replay", &host, &capture]);
    let count = |verdict: &str| json["verdicts"][verdict]["packets"].as_u64().unwrap();
    assert_eq!((count("accept"), count("drop"), count("unknown")), (1, 2, 0), "{json}");
    assert_eq!(json["rules"]["file"], format!("{host}/iptables.save"));
    let text = stdout(0, &["replay", &host, &capture]);
    assert!(text.contains(&format!("next: tamis replay {host} {capture}")), "{text}");
    assert!(!text.contains("rules6"), "{text}");
    assert_eq!(tamis(&["why", &host, "--packet", PACKETS[0]]).status.code(), Some(0));
    assert_eq!(tamis(&["why", &host, "--packet", PACKETS[2]]).status.code(), Some(1));
}

#[test]
fn connections_of_a_folder_were_there_before() {
    let bench = Bench::new();
    let rules = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n\
                 -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\nCOMMIT\n";
    let flow = "udp      17 29 src=198.51.100.7 dst=10.0.0.9 sport=53 dport=4000 src=10.0.0.9 dst=198.51.100.7 \
                sport=4000 dport=53 [ASSURED] mark=0 use=1\n";
    let host = folder(&bench, &[("iptables.save", rules), ("conntrack.txt", flow)]);
    let packet = "udp 198.51.100.7:53 > 10.0.0.9:4000";
    assert_eq!(tamis(&["why", &host, "--packet", packet]).status.code(), Some(0));
    let listed_at = |time: &str| {
        folder(&bench, &[("collected.txt", &format!("# collected at={time}\nconntrack.txt\n"))])
    };
    let capture = bench.capture("c.pcapng", &[packet]);
    let accepted = || {
        let json = report(0, &["replay", &host, &capture]);
        (json["verdicts"]["accept"]["packets"].as_u64(), json["warnings"].as_array().unwrap().len())
    };
    // A packet that is asked about is of no time.
    for (time, are_there) in [("0.000000000", true), ("4102444800.5", false), ("nonsense", true)] {
        listed_at(time);
        assert_eq!(accepted(), (Some(u64::from(are_there)), usize::from(!are_there)), "{time}");
        assert_eq!(tamis(&["why", &host, "--packet", packet]).status.code(), Some(0), "{time}");
    }
    fs::remove_file(Path::new(&host).join("conntrack.txt")).unwrap();
    assert_eq!(tamis(&["why", &host, "--packet", packet]).status.code(), Some(1));
    folder(&bench, &[("conntrack.txt", "nonsense\n")]);
    assert!(refusal(&["why", &host, "--packet", packet]).contains("fw/conntrack.txt:1:"));
}

#[test]
fn options_override_the_files_of_a_folder() {
    let bench = Bench::new();
    let (host, capture) = (usual(&bench), bench.capture("c.pcapng", &PACKETS));
    let sets = bench.file("other.save", SETS.replace(".7", ".8"));
    let rules6 = bench.file("rules.v6", V6.replace("-j DROP", "-j ACCEPT"));
    let verdicts = bench.path("verdicts").display().to_string();
    let all =
        ["replay", &host, &capture, "--ipset", &sets, "--rules6", &rules6, "--verdicts", &verdicts];
    let text = stdout(0, &all);
    assert_eq!(fs::read_to_string(&verdicts).unwrap(), "drop\naccept\naccept\n");
    assert!(text.contains(&format!("--rules6 {rules6}")), "{text}");
    let json = report(0, &["replay", &host, &capture, "--family", "ip6"]);
    assert_eq!(json["verdicts"]["skip"]["packets"], 2, "{json}");
}

/// An IPv6 packet whose options claim 16 bytes and have 8: since 6.1.189 and 6.18.55 `-p` drops it.
fn claims_too_much() -> Vec<u8> {
    let mut frame =
        vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 60, 64];
    for last in [1, 2] {
        frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    frame.extend([17, 1, 1, 4, 0, 0, 0, 0]);
    frame
}

#[test]
fn answers_are_those_of_the_kernel_that_is_named() {
    const UNAME: &str =
        "Linux 6.1.0-56-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)\n";
    let bench = Bench::new();
    let rules = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j DROP\nCOMMIT\n";
    let host = folder(&bench, &[("ip6tables.save", rules)]);
    let frame = claims_too_much();
    let capture = bench.frames("c.pcapng", &[ethernet("eth0")], &[(0, &frame)]);
    let told = |options: &[&str]| {
        let all = [&["replay", &host, &capture, "--path", "forward"], options].concat();
        let json = report(0, &all);
        let count = |verdict: &str| json["verdicts"][verdict]["packets"].as_u64().unwrap();
        let assumed = &json["assumed"];
        let kernel = (assumed["kernel"].clone(), assumed["kernel_given"].clone());
        assert_eq!(assumed["kernel_packets"], 1);
        let line = format!("kernel {} for 1 packet (--kernel)", kernel.0.as_str().unwrap());
        assert_eq!(stdout(0, &all).contains(&line), kernel.1 == false, "{line}");
        ([count("accept"), count("drop"), count("unknown")], kernel)
    };
    let given = |version: &str| (version.into(), true.into());
    assert_eq!(told(&[]), ([1, 0, 0], ("6.18.44".into(), false.into())));
    assert_eq!(told(&["--kernel", "6.18.55"]), ([0, 1, 0], given("6.18.55")));
    assert_eq!(told(&["--kernel", "6.6.9"]), ([0, 0, 1], given("6.6.9")));
    folder(&bench, &[("uname.txt", UNAME)]);
    assert_eq!(told(&[]), ([0, 1, 0], given("6.1.192")));
    assert_eq!(told(&["--kernel", "6.1.100"]), ([1, 0, 0], given("6.1.100")));
    folder(&bench, &[("uname.txt", "FreeBSD 14\n")]);
    let text = refusal(&["replay", &host, &capture]);
    assert!(text.contains("fw/uname.txt:1:1: expected Linux, found \"FreeBSD\""), "{text}");
    let text = refusal(&["replay", &host, &capture, "--kernel", "six"]);
    assert!(text.contains("expected a version of Linux"), "{text}");
}

#[test]
fn cases_and_conversions_take_a_folder() {
    let bench = Bench::new();
    let host = usual(&bench);
    let case = format!(
        "rules = \"fw\"\n[[case]]\nname = \"one\"\npacket = \"{}\"\nexpect = \"accept\"\n",
        PACKETS[0]
    );
    let cases = bench.file("cases.toml", case);
    assert!(stdout(0, &["test", &cases]).contains("1 passed"));
    assert!(stdout(0, &["test", &host, &cases]).contains("1 passed"));
    let converted = stdout(0, &["convert", &host, "--from", "ip6tables", "--to", "ip6tables"]);
    assert!(converted.contains("-A FORWARD -p udp -j DROP"), "{converted}");
    assert!(stdout(0, &["convert", &host, "--to", "iptables"]).contains("match-set good"));
}

#[test]
fn what_is_wrong_with_a_folder_is_told_with_its_place() {
    let bench = Bench::new();
    let host = folder(&bench, &[("routes.txt", "")]);
    let capture = bench.capture("c.pcapng", &PACKETS);
    let replay = || refusal(&["replay", &host, &capture]);
    assert!(
        replay().contains("fw: expected a ruleset in this folder (iptables.save, "),
        "{}",
        replay()
    );
    folder(&bench, &[("iptables.save", V4), ("routes.txt", "default dev a\nhere dev a\n")]);
    let expected = "fw/routes.txt:2:1: expected an address, a prefix or default, found \"here\"";
    assert!(replay().contains(expected), "{}", replay());
    folder(&bench, &[("routes.txt", ""), ("links.txt", "1: lo: <UP>\nx")]);
    assert!(replay().contains("fw/links.txt:2:1: expected the number of an interface"));
    fs::write(Path::new(&host).join("links.txt"), b"1: \xff").unwrap();
    assert!(replay().contains("fw/links.txt:1:4: expected UTF-8"), "{}", replay());
    folder(&bench, &[("links.txt", ""), ("ipset.save", "nonsense")]);
    assert!(replay().contains("fw/ipset.save:1"), "{}", replay());
    folder(&bench, &[("ipset.save", SETS), ("ip6tables.save", "*filter\n-A")]);
    assert!(replay().contains("fw/ip6tables.save:2"), "{}", replay());
    let links = bench.file("links.txt", "nonsense");
    let rules = bench.file("r.v4", V4);
    let text = refusal(&["replay", &rules, &capture, "--links", &links]);
    assert!(text.contains("links.txt:1:1: expected the number of an interface"), "{text}");
}

/// The files of a folder with their texts; what counts packets or time is left out.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let steady =
        |name: &str| !matches!(name, "sysctl.txt" | "neigh.txt" | "links.txt" | "conntrack.txt");
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(entry.path()).unwrap();
        let kept =
            text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        (name.clone(), if steady(&name) { kept } else { String::new() })
    };
    fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap())).collect()
}

/// Runs a shell's words in a network namespace that ends with it.
pub(crate) fn in_namespace(shell: &[&str], script: &str) -> Output {
    let mut child = Command::new("unshare")
        .arg("--net")
        .args(shell)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that ends early reads no more.
    let _ = child.stdin.take().unwrap().write_all(script.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn collect_and_its_script_write_the_same_folder() {
    let works = Command::new("unshare").args(["--net", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return println!("SKIPPED: collecting needs root and network namespaces");
    }
    let bench = Bench::new();
    let script = bench.file("collect.sh", stdout(0, &["collect", "--script", "by script"]));
    let shells = [("dash", "dash"), ("busybox sh", "busybox"), ("bash", "bash")];
    let there = |program: &str| Command::new(program).args(["-c", ":"]).output().is_ok();
    let mut script_runs = String::new();
    for (number, (shell, program)) in shells.iter().enumerate() {
        if there(program) {
            script_runs.push_str(&format!(
                "mkdir s{number}; {shell} -s <{script} | tar xf - -C s{number}\n"
            ));
        }
    }
    let program = env!("CARGO_BIN_EXE_tamis");
    let all = format!(
        "cd {}; ip link set lo up; ip link add e0 type veth peer name e1; ip addr add 10.0.0.1/24 dev e0\n\
         ip link set e0 up; ip route add default dev e0; ip rule add from 10.0.0.9 lookup 100\n\
         iptables-legacy -A FORWARD -s 10.0.0.9 -j DROP; sleep 2\n\
         {program} collect fw; echo code $?; {program} collect fw; echo code $?\n{script_runs}",
        bench.dir.path().display(),
    );
    let output = in_namespace(&["sh"], &all);
    let message = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        message.matches("code 0").count(),
        2,
        "{message}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let collected = contents(&bench.path("fw"));
    assert!(collected["routes.txt"].contains("default dev e0"), "{collected:?}");
    assert!(collected["rule.txt"].contains("from 10.0.0.9 lookup 100"));
    assert!(collected["collected.txt"].contains("addresses.txt"));
    for (number, shell) in shells.iter().enumerate() {
        let folder = bench.path(&format!("s{number}/by script"));
        if !folder.exists() {
            println!("SKIPPED: the script by {}, which is not installed", shell.0);
            continue;
        }
        let written = contents(&folder);
        for folder in [&folder, &bench.path("fw")] {
            let names = fs::read_to_string(folder.join("collected.txt")).unwrap();
            assert_eq!(names.matches("# collected at=1").count(), 1, "{names}");
        }
        if shell.1 == "busybox" {
            // It may run programs of its own, which print less.
            assert_eq!(written.get("iptables.save"), collected.get("iptables.save"));
            assert!(written["routes.txt"].contains("default dev e0"), "{written:?}");
            let packet = "tcp 10.0.0.9:51200 > 10.0.7.9:22 syn";
            let why = ["why", &folder.display().to_string(), "--packet", packet];
            assert_ne!(tamis(&why).status.code(), Some(2), "{written:?}");
        } else {
            assert_eq!(written, collected, "{}", shell.0);
        }
    }
    if collected.contains_key("iptables.save") {
        assert!(
            collected["iptables.save"].contains("-A FORWARD -s 10.0.0.9/32 -j DROP"),
            "{collected:?}"
        );
        let host = bench.path("fw").display().to_string();
        let packet = "tcp 10.0.0.9:51200 > 10.0.7.9:22 syn";
        assert_eq!(
            tamis(&["why", &host, "--packet", packet, "--in", "e0", "--out", "e0"]).status.code(),
            Some(1)
        );
    }
}

/// Without root there are no rules, and a folder without them would say that all is accepted.
#[test]
fn collect_without_root_fails_and_names_what_is_missing() {
    let program = env!("CARGO_BIN_EXE_tamis");
    let bench = Bench::new();
    let here = bench.dir.path().display();
    let script = bench.file("collect.sh", stdout(0, &["collect", "--script", "by script"]));
    let copy = bench.path("tamis");
    fs::copy(program, &copy).unwrap();
    let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let all = format!(
        "cd {here}; chmod 755 .; mkdir out; chmod 777 out; {nobody} true || exit 77\n\
         iptables-nft-save >/dev/null || exit 77\n\
         {nobody} ./tamis collect out/fw; echo code $?; {nobody} sh -s <{script} >by-script.tar; echo code $?\n"
    );
    let output = in_namespace(&["sh"], &all);
    let told = String::from_utf8_lossy(&output.stdout);
    if told.matches("code").count() < 2 {
        return println!("SKIPPED: collecting needs root, setpriv and iptables-nft");
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("code 1").count(), 2, "{told}{said}");
    for last in ["out/fw is without ", "by script is without "] {
        let line =
            said.lines().find_map(|line| line.strip_prefix(&format!("tamis collect: {last}")));
        let line = line.unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains("iptables.save") && line.ends_with("; run it as root"), "{said}");
    }
    let written = contents(&bench.path("out/fw"));
    assert!(written.contains_key("links.txt") && !written.contains_key("iptables.save"));
}

#[test]
fn what_collect_did_not_write_stays() {
    let bench = Bench::new();
    let host = folder(&bench, &[("routes.txt", "mine\n")]);
    let text = refusal(&["collect", &host]);
    assert!(text.contains("fw/routes.txt: exists, and tamis collect did not write it"), "{text}");
    assert_eq!(fs::read_to_string(Path::new(&host).join("routes.txt")).unwrap(), "mine\n");
    assert_eq!(fs::read_dir(&host).unwrap().count(), 1);
    let file = bench.file("file", "");
    assert!(refusal(&["collect", &file]).contains("expected a folder, found a file"));
    assert!(refusal(&["collect"]).contains("DIR"));
}
