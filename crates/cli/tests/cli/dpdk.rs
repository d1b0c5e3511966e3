//! `tamis run` with devices of DPDK, and the study's files of properties. Needs root, and a tamis built with DPDK.

use std::process::{Command, Stdio};

use pktio::{Burst, CaptureReader, Port};

use crate::ran::{Scratch, TAMIS, skipped, tamis};
use crate::started::Started;

const RULES: &str =
    "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i left -p tcp --dport 80 -j ACCEPT\nCOMMIT\n";
const SPECS: [&str; 3] = [
    "tcp 10.0.0.7:40000 > 10.0.0.9:80 syn",
    "tcp 10.0.0.7:40001 > 10.0.0.9:22 syn",
    "tcp 10.0.0.7:40002 > 10.0.0.9:80 syn",
];

/// The frames of a capture, as they are.
fn frames_of(capture: &str) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(capture).unwrap();
    let (mut burst, mut frames) = (Burst::new(), Vec::new());
    while reader.rx_burst(&mut burst).unwrap() > 0 {
        frames.extend(burst.iter().map(|frame| frame.bytes.to_vec()));
    }
    frames
}

/// A configuration of two devices, made by the EAL from these arguments.
fn config(folder: &Scratch, rules: &str, devices: [(&str, &str); 2]) -> String {
    folder.write("rules.v4", rules);
    let names = ["left", "right"].into_iter().zip(devices);
    let ports = names.map(|(name, (device, _))| {
        format!("[[port]]\nname = \"{name}\"\nkind = \"dpdk\"\ndevice = \"{device}\"\n")
    });
    let ports: String = ports.collect();
    let vdevs = devices.map(|(device, with)| format!("--vdev={device}{with}"));
    let prefix = format!("--file-prefix={}", prefix());
    let eal = ["--no-huge", "-m", "96", "--no-pci", "--no-shconf", "--no-telemetry", &prefix];
    let eal: Vec<&str> = eal.into_iter().chain(vdevs.iter().map(String::as_str)).collect();
    let rest = format!(
        "[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
         [control]\nsocket = \"c\"\n[dpdk]\neal = {eal:?}\n"
    );
    folder.write("live.toml", ports + &rest)
}

/// Of the EAL's files of one test; each is in a thread of its own.
fn prefix() -> String {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default().replace("::", "-");
    format!("tamis-{}-{test}", std::process::id())
}

/// The files that the EAL of a test leaves behind, which go with it.
struct Eal;

impl Drop for Eal {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(format!("/var/run/dpdk/{}", prefix()));
    }
}

/// `None` where this tamis was built without DPDK, or may not use it.
fn started(command: Command) -> Option<(Eal, Started)> {
    if !Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n") {
        skipped("devices of DPDK: not root");
        return None;
    }
    let run = Started::new(command).map_err(|said| {
        assert!(said.contains("built without DPDK: apt-get install libdpdk-dev"), "{said}");
        skipped("devices of DPDK: built without it (make deps)");
    });
    // The run ends before its files go.
    run.ok().map(|run| (Eal, run))
}

#[test]
fn a_capture_goes_through_the_rules_from_device_to_device() {
    let folder = Scratch::new("dpdk-pcap");
    let from = folder.capture("in.pcap", "eth0", &SPECS);
    let (reads, writes) =
        (format!(",rx_pcap={from}"), format!(",tx_pcap={}", folder.file("out.pcap")));
    let config = config(&folder, RULES, [("net_pcap0", &reads), ("net_pcap1", &writes)]);
    let mut run = Command::new(TAMIS);
    run.args(["run", &config, "--json"]);
    let Some((_eal, run)) = started(run) else { return };
    let socket = folder.file("c");
    let status = || tamis(&["ctl", "--socket", &socket, "--json", "status"]).json();
    while status()["wires"][0]["received"] != 3 {}
    let given_up = status()["given_up"].clone();
    let is_gone = ["system_calls", "capabilities"].map(|what| given_up[what] == true);
    assert_eq!(is_gone, [false, true], "{given_up}");
    assert_eq!(tamis(&["ctl", "--socket", &socket, "stop"]).code, Some(0));
    let ran = run.ended();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // The EAL says nothing where the counters are read.
    let wire = &ran.json()["wires"][0];
    assert_eq!(
        (wire["sent"].as_u64(), wire["dropped"].to_string()),
        (Some(2), r#"{"policy":1}"#.into())
    );
    let came = frames_of(&from);
    assert_eq!(frames_of(&folder.file("out.pcap")), [&came[0][..], &came[2]]);

    // Not all can be given up, and so nothing runs where that is asked for.
    let text = std::fs::read_to_string(&config).unwrap() + "[privileges]\ndrop = \"required\"\n";
    folder.write("live.toml", text);
    let refused = tamis(&["run", &config]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("the drivers of DPDK ask for is not known"), "{}", refused.err);
}

#[test]
fn hosts_ping_each_other_through_taps() {
    let folder = Scratch::new("dpdk-tap");
    let rules = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p icmp -j ACCEPT\nCOMMIT\n";
    let config = config(&folder, rules, [("net_tap0", ",iface=t0"), ("net_tap1", ",iface=t1")]);
    let Some(names) = Namespaces::new() else {
        return skipped("hosts on taps: no network namespaces (not root?)");
    };
    let [a, m, b] = &names.0;
    let mut run = Command::new("ip");
    run.args(["netns", "exec", m, TAMIS, "run", &config]);
    let Some((_eal, run)) = started(run) else { return };
    for (device, name, address) in [("t0", a, "10.9.0.1"), ("t1", b, "10.9.0.2")] {
        assert!(ip(&format!("-n {m} link set {device} netns {name}")));
        assert!(ip(&format!("-n {name} addr add {address}/24 dev {device}")));
        assert!(ip(&format!("-n {name} link set {device} up")));
    }
    let mut ping = Command::new("ip");
    ping.args(["netns", "exec", a, "ping", "-c", "3", "-i", "0.2", "-W", "20", "10.9.0.2"]);
    let said = ping.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    let socket = folder.file("c");
    let saved = tamis(&["ctl", "--socket", &socket, "counters", "--save"]).out;
    assert!(saved.contains("[6:504] -A FORWARD -p icmp -j ACCEPT"), "{saved}");
    assert_eq!(tamis(&["ctl", "--socket", &socket, "stop"]).code, Some(0));
    let ran = run.ended();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

/// Three network namespaces, which go with it.
struct Namespaces([String; 3]);

impl Namespaces {
    fn new() -> Option<Self> {
        let names = ["a", "m", "b"].map(|name| format!("tamis-tap-{}-{name}", std::process::id()));
        let namespaces = Self(names);
        namespaces.0.iter().all(|name| ip(&format!("netns add {name}"))).then_some(namespaces)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    let run = Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

#[test]
fn the_studys_properties_become_a_configuration() {
    let folder = Scratch::new("properties");
    folder.write("rules.v4", RULES);
    let study = folder.write(
        "fw.properties",
        "rxburst=512\ntxburst=16\nfreeburst=16\nnumcores=1\nnumports=0x3\nmemorychannels=3\n\
         programid=fw\nprogramname=firewall\nmemory=256\nblacklist=00:09.0,00:0a.0\n",
    );
    let printed = tamis(&["run", "--from-properties", &study]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let config = folder.write("live.toml", &printed.out);
    let checked = tamis(&["run", &config, "--check"]);
    assert_eq!(checked.out, format!("{config}: ports 2, wires 1\nnext: tamis run {config}\n"));
    let refused = folder.write("other.properties", "numports=3\nlinks=2\n");
    let refused = tamis(&["run", "--from-properties", &refused]);
    assert!(refused.refusal().ends_with("found \"links\" (line 2)"), "{}", refused.err);
    assert_eq!(tamis(&["run", &config, "--from-properties", &study]).code, Some(2));
}

#[test]
fn the_doctor_says_whether_devices_of_dpdk_can_be_had() {
    let folder = Scratch::new("dpdk-doctor");
    let config = config(&folder, RULES, [("net_null0", ""), ("net_null1", "")]);
    let examined = tamis(&["doctor", &config, "--json"]);
    assert_eq!(examined.code == Some(0), pktio_dpdk::IS_BUILT);
    let report = examined.json();
    let dpdk = report["ports"].as_array().unwrap().iter().find(|port| port["what"] == "dpdk");
    let expected = (&true.into(), &pktio_dpdk::IS_BUILT.into());
    assert_eq!(dpdk.map(|dpdk| (&dpdk["needed"], &dpdk["works"])), Some(expected));
}
