//! Configurations: what is refused, where, and what is said of rules before they run.

use std::fs;
use std::sync::Arc;

use dataplane::Unresolved;
use live::config::{
    BurstSettings, Cores, Kind, LogFormat, MetricsSettings, OnError, OnPanic, Order, Other,
    Privileges, Settings, Side, Slot, Workers,
};
use pktio::pcap_file::{ClassicWriter, NgWriter, Precision};
use pktio::{InProcess, Interface, LinkType, Opener, Pace, Speed, XdpMode};

const PORTS: &str = "[[port]]\nname = \"left\"\nkind = \"loopback\"\n\
    [[port]]\nname = \"right\"\nkind = \"loopback\"\n";
const WIRE: &str = "[[wire]]\nports = [\"left\", \"right\"]\n";
const RULES: &str = "[rules]\nip = \"rules.v4\"\n";

#[test]
fn a_whole_configuration_is_read() {
    let text = format!(
        "{PORTS}[[port]]\nname = \"bad\"\nkind = \"fault\"\nof = \"left\"\nseed = 7\ndrop = 1000\n\
         [[port]]\nname = \"file\"\nkind = \"pcap\"\nfile = \"in.pcap\"\nout = \"/tmp/out.pcap\"\n\
         pace = \"capture\"\nspeed = 2.5\naddress = [\"192.0.2.1/24\", \"2001:db8::1/64\"]\nmtu = 1492\n\
         [[wire]]\nports = [\"bad\", \"right\"]\nttl = \"keep\"\nother = \"drop\"\n\
         {RULES}ip6 = \"rules.v6\"\nunknown = \"accept\"\non_panic = \"open\"\n\
         [workers]\nscheme = \"run_to_completion\"\ncores = \"scatter\"\ncount = 3\n\
         [burst]\nrx = 16\ndrain_us = 2500\n[conntrack]\nmax = 1000\nfile = \"ct\"\ngrace = 30\n\
         [privileges]\ndrop = \"required\"\n[control]\nsocket = \"c.sock\"\n\
         [metrics]\nlisten = \"[::1]:80\"\nrules = true\n[log]\nformat = \"json\"\n\
         [middlebox]\nplace = \"before\"\non_error = \"pass\"\nring = 4096\n"
    );
    let settings = Settings::from_text("conf/live.toml", &text).expect("a configuration");
    assert_eq!((settings.ports.len(), settings.wires[0].ports), (4, [2, 1]));
    assert_eq!(settings.wires[0].other, Other::Drop);
    assert_eq!((settings.unknown, settings.on_panic), (Unresolved::Accept, OnPanic::Open));
    assert_eq!((settings.connections, settings.restart.grace), (1000, 30));
    let file = settings.restart.file.as_ref().and_then(|named| named.path.to_str());
    assert_eq!((file, settings.privileges), (Some("conf/ct"), Privileges::Required));
    assert_eq!(settings.workers, Workers { cores: Cores::Scatter, count: Some(3) });
    assert_eq!(settings.burst, BurstSettings { rx: 16, tx: 32, free: 256, drain_us: 2500 });
    // Beside the configuration, unless said otherwise.
    assert_eq!(
        settings.socket.as_ref().and_then(|socket| socket.path.to_str()),
        Some("conf/c.sock")
    );
    let Kind::Pcap { file: Some(file), out: Some(out), pace } = &settings.ports[3].kind else {
        panic!()
    };
    assert_eq!(
        (file.path.to_str(), out.path.to_str()),
        (Some("conf/in.pcap"), Some("/tmp/out.pcap"))
    );
    assert_eq!((file.at.line, file.at.column), (16, 8));
    assert_eq!(Some(*pace), Speed::new(2.5).map(Pace::Timed));
    let addresses = settings.ports[3].addresses.iter().map(ToString::to_string);
    assert!(addresses.eq(["192.0.2.1", "2001:db8::1"]));
    let listen = "[::1]:80".parse().expect("an address");
    assert_eq!(settings.metrics, Some(MetricsSettings { listen, rules: true, names: Vec::new() }));
    assert_eq!(settings.log, LogFormat::Json);
    let middlebox = settings.middlebox.expect("a middlebox");
    assert_eq!(middlebox.slot, Slot { side: Side::Before, on_error: OnError::Pass });
    assert_eq!((middlebox.ring, middlebox.at.line), (4096, text.lines().count() - 3));
    assert_eq!((settings.ports[3].mtu, settings.ports[0].mtu), (Some(1492), None));
}

#[test]
fn a_wire_has_its_own_scheme_or_that_of_all() {
    let order = |wire: &str, rest: &str| {
        let text = format!("{PORTS}{WIRE}{wire}{RULES}{rest}");
        Settings::from_text("live.toml", &text).map(|settings| settings.wires[0].order)
    };
    let all = "[workers]\nscheme = \"ordered\"\n";
    assert_eq!(order("", "").unwrap(), Order::Flow);
    assert_eq!(order("", all).unwrap(), Order::Wire);
    assert_eq!(order("scheme = \"ordered\"\n", "").unwrap(), Order::Wire);
    assert_eq!(order("scheme = \"run_to_completion\"\n", all).unwrap(), Order::Flow);
    assert_eq!(order("order = \"flow\"\n", all).unwrap(), Order::Flow);
    let refused = order("order = \"wire\"\n", "").unwrap_err().to_string();
    assert_eq!(refused, "live.toml:9:9: expected scheme = \"ordered\" for order = \"wire\"");
}

/// A third port of this kind, which no wire joins.
fn kind(kind: &str, rest: &str) -> Result<Kind, String> {
    let port = format!("[[port]]\nname = \"x\"\nkind = \"{kind}\"\ndevice = \"e0\"\n{rest}");
    let settings = Settings::from_text("live.toml", &format!("{PORTS}{port}{WIRE}{RULES}"));
    settings.map(|mut settings| settings.ports.remove(2).kind).map_err(|error| error.to_string())
}

#[test]
fn a_device_is_received_by_as_many_queues_as_it_has_unless_told_otherwise() {
    let (device, mode) = ("e0".to_owned(), XdpMode::Auto);
    for (told, queues) in [("", 64), ("queues = 2\n", 2)] {
        let device = device.clone();
        assert_eq!(kind("af_packet", told).unwrap(), Kind::AfPacket { device, queues });
    }
    for (told, queues) in [("", 64), ("queues = 2\n", 2)] {
        let device = device.clone();
        assert_eq!(kind("af_xdp", told).unwrap(), Kind::AfXdp { device, queues, mode });
    }
    for name in ["af_packet", "af_xdp"] {
        for refused in ["0", "65"] {
            let expected = "expected a whole number from";
            let error = kind(name, &format!("queues = {refused}\n")).unwrap_err();
            assert!(error.contains(":10: "), "{error}");
            assert!(error.contains(expected) && error.ends_with(refused), "{error}");
        }
    }
}

#[test]
fn an_af_xdp_port_takes_all_natively_if_it_can_unless_told_otherwise() {
    let told = kind("af_xdp", "mode = \"generic\"\n").unwrap();
    let device = "e0".to_owned();
    assert_eq!(told, Kind::AfXdp { device, queues: 64, mode: XdpMode::Generic });
    let refused = kind("af_xdp", "mode = \"fast\"\n").unwrap_err();
    assert_eq!(refused, "live.toml:11:8: expected one of auto native generic, found \"fast\"");
}

#[test]
fn every_error_has_its_place_and_says_what_is_allowed() {
    let port = |rest: &str| format!("[[port]]\nname = \"left\"\n{rest}\n");
    let wire = |rest: &str| format!("{PORTS}[[wire]]\n{rest}\n{RULES}");
    let rules = |rest: &str| format!("{PORTS}{WIRE}[rules]\n{rest}\n");
    let after = |rest: &str| format!("{PORTS}{WIRE}{RULES}{rest}\n");
    let cases: [(String, &str); 64] = [
        (String::new(), "1:1: expected at least one [[port]]"),
        ("a = ".into(), "1:5: TOML: string values must be quoted, expected literal string"),
        (
            "ports = 1".into(),
            "1:1: expected one of port wire rules workers burst conntrack control metrics middlebox log privileges dpdk, found \"ports\"",
        ),
        (
            after("[metrics]\nlisten = \"localhost\""),
            "12:10: expected an address with a port, such as \"127.0.0.1:9469\", found \"localhost\"",
        ),
        (after("[metrics]\nlisten = 9469"), "12:10: expected a string, found integer"),
        (after("[metrics]\nrules = 1"), "12:9: expected true or false, found integer"),
        (after("[metrics]\nport = 1"), "12:1: expected one of listen rules names, found \"port\""),
        (
            after("[middlebox]\nplace = \"between\""),
            "12:9: expected one of after before, found \"between\"",
        ),
        (after("[middlebox]\non_error = 1"), "12:12: expected a string, found integer"),
        (
            after("[middlebox]\nclass = \"Firewall\""),
            "12:1: expected one of kind place on_error ring, found \"class\"",
        ),
        (
            after("[middlebox]\nring = 2000000"),
            "12:8: expected a whole number from 0 to 1048576, found 2000000",
        ),
        (after("[log]\nformat = \"xml\""), "12:10: expected one of text json, found \"xml\""),
        (after("[dpdk]"), "11:1: expected eal = … in this [dpdk]"),
        (
            after("[dpdk]\neal = \"--no-pci\""),
            "12:7: expected a list of the EAL's arguments, such as \"--no-pci\", found string",
        ),
        (after("[dpdk]\neal = [\"\"]"), "12:8: expected an argument of the EAL, found \"\""),
        (after("[burst]\nrx = 1025"), "12:6: expected a whole number from 0 to 1024, found 1025"),
        (after("[burst]\ntx = 0"), "12:6: expected a whole number from 1 to 512, found 0"),
        (after("[burst]\nsize = 1"), "12:1: expected one of rx tx free drain_us, found \"size\""),
        ("[port]\nname = \"a\"".into(), "1:1: expected at least one [[port]], found table"),
        ("port = [1]".into(), "1:9: expected a table, found integer"),
        (port(""), "1:1: expected kind = … in this [[port]]"),
        (port("kind = \"tunnel\""), "1:1: expected file = … in this [[port]]"),
        (
            port("kind = \"wifi\""),
            "3:8: expected one of af_packet af_xdp tun dpdk pcap loopback tunnel fault, found \"wifi\"",
        ),
        (port("kind = 1"), "3:8: expected a string, found integer"),
        (
            port("kind = \"loopback\"\nfile = \"a\""),
            "4:1: expected one of name kind address mtu, found \"file\"",
        ),
        (
            port("kind = \"loopback\"\nqueues = 2"),
            "4:1: expected one of name kind address mtu, found \"queues\"",
        ),
        (
            port("kind = \"loopback\"\naddress = \"10.0.0.1\""),
            "4:11: expected a list of addresses such as \"192.0.2.1/24\", found string",
        ),
        (
            port("kind = \"loopback\"\naddress = [\"10.0.0.1/33\"]"),
            "4:12: expected the address of a host, such as 192.0.2.1/24 or 2001:db8::1/64, found \"10.0.0.1/33\"",
        ),
        (
            port("kind = \"loopback\"\naddress = [\"ff02::1\"]"),
            "4:12: expected the address of a host, such as 192.0.2.1/24 or 2001:db8::1/64, found \"ff02::1\"",
        ),
        (
            port("kind = \"loopback\"\naddress = [\"10.0.0.1\", \"10.0.1.1/24\"]"),
            "4:24: expected one address of each family, found \"10.0.1.1\" as well",
        ),
        (port("kind = \"loopback\"\nmtu = 67"), "4:7: expected at least 68, found 67"),
        (
            port("kind = \"pcap\"\nfile = \"a\"\npace = \"slow\""),
            "5:8: expected one of flat capture, found \"slow\"",
        ),
        (
            port("kind = \"pcap\"\nfile = \"a\"\nspeed = 2"),
            "5:9: expected pace = \"capture\" beside speed",
        ),
        (
            port("kind = \"pcap\"\nfile = \"a\"\npace = \"capture\"\nspeed = 0.0"),
            "6:9: expected a number above 0, found 0.0",
        ),
        (port("kind = \"pcap\""), "1:1: expected file = … in this [[port]]"),
        (port("kind = \"pcap\"\nfile = \"\""), "4:8: expected the name of a file, found \"\""),
        (
            port("kind = \"fault\"\nof = \"right\""),
            "4:6: expected one of the ports , found \"right\"",
        ),
        (
            format!("{PORTS}{}", "[[port]]\nname = \"left\"\nkind = \"loopback\""),
            "8:8: expected a name of its own, found \"left\" again",
        ),
        (
            "[[port]]\nname = \"a name\"\nkind = \"loopback\"".into(),
            "2:8: expected 1 to 15 bytes without spaces, / and :, found \"a name\"",
        ),
        (
            format!(
                "{PORTS}{}",
                "[[port]]\nname = \"a\"\nkind = \"fault\"\nof = \"left\"\n[[port]]\nname = \"b\"\nkind = \"fault\"\nof = \"left\""
            ),
            "14:6: expected a port that nothing else has, found \"left\" again",
        ),
        (PORTS.into(), "7:1: expected at least one [[wire]]"),
        (wire("ports = [\"left\"]"), "8:9: expected a list of two ports, found 1"),
        (wire("ports = \"left\""), "8:9: expected a list of two ports, found string"),
        (
            wire("ports = [\"left\", \"wan\"]"),
            "8:18: expected one of the ports left right, found \"wan\"",
        ),
        (
            wire("ports = [\"left\", \"left\"]"),
            "8:18: expected a port that nothing else has, found \"left\" again",
        ),
        (
            wire("ports = [\"left\", \"right\"]\nttl = \"raise\""),
            "9:7: expected one of keep lower, found \"raise\"",
        ),
        (
            wire("ports = [\"left\", \"right\"]\nother = \"ask\""),
            "9:9: expected one of pass drop, found \"ask\"",
        ),
        (format!("{PORTS}{WIRE}"), "9:1: expected [rules]"),
        (rules(""), "9:1: expected one of ip ip6 arp bridge in [rules]"),
        (rules("ip = \"a\"\nbans = 1"), "11:8: expected a string, found integer"),
        (
            wire("ports = [\"left\", \"right\"]\nttl = \"lower\"")
                .replace("[rules]\n", "[rules]\nbridge = \"b\"\n"),
            "11:10: bridge on a wire with ttl = \"lower\": a router's packets cross no bridge",
        ),
        (
            rules("ip = \"a\"\nunknown = \"pass\""),
            "11:11: expected one of drop accept, found \"pass\"",
        ),
        (rules("ip = \"a\"\non_panic = true"), "11:12: expected a string, found boolean"),
        (
            after("[workers]\nscheme = \"random\""),
            "12:10: expected one of run_to_completion ordered, found \"random\"",
        ),
        (
            after("[workers]\ncores = [3, 1, 3]"),
            "12:16: expected a core from 0 to 1023 that is not in the list before, found 3",
        ),
        (
            after("[workers]\ncores = \"close\""),
            "12:9: expected one of compact scatter, found \"close\"",
        ),
        (
            after("[workers]\ncores = [0]\ncount = 2"),
            "13:9: expected no count beside a list of cores",
        ),
        (after("[workers]\ncount = 0"), "12:9: expected a whole number from 1 to 64, found 0"),
        (after("[burst]\ntx = 513"), "12:6: expected a whole number from 0 to 512, found 513"),
        (
            after("[conntrack]\nmax = -1"),
            "12:7: expected a whole number from 0 to 1073741824, found -1",
        ),
        (
            after("[conntrack]\ngrace = 4000"),
            "12:9: expected a whole number from 0 to 3600, found 4000",
        ),
        (
            after("[privileges]\ndrop = \"some\""),
            "12:8: expected one of auto required off, found \"some\"",
        ),
        (
            after("[privileges]\nreopen = \"some\""),
            "12:10: expected one of parent keep no, found \"some\"",
        ),
        (after("[control]"), "11:1: expected socket = … in this [control]"),
    ];
    for (text, expected) in cases {
        let error = Settings::from_text("live.toml", &text).expect_err(expected);
        assert_eq!(error.to_string(), format!("live.toml:{expected}"), "{text}");
    }
}

#[test]
fn a_tunnel_is_wired_to_ports_of_packets() {
    let wired = |keys: &str, faults: &str, names: &str| {
        let text = format!(
            "[[port]]\nname = \"lan\"\n{keys}\n[[port]]\nname = \"office\"\nkind = \"tunnel\"\nfile = \"o\"\n\
             {faults}[[wire]]\nports = {names}\n{RULES}"
        );
        Settings::from_text("live.toml", &text).map(|_| ()).map_err(|error| error.to_string())
    };
    let faulty = "[[port]]\nname = \"bad\"\nkind = \"fault\"\nof = \"lan\"\n\
        [[port]]\nname = \"worse\"\nkind = \"fault\"\nof = \"office\"\n\
        [[port]]\nname = \"worst\"\nkind = \"fault\"\nof = \"worse\"\n";
    let refused = |at: &str, name: &str, kind: &str| {
        let what =
            "expected a port of kind tun beside a tunnel, which carries no frames of Ethernet";
        Err(format!("live.toml:{at}: {what}, found \"{name}\" of kind {kind}"))
    };
    for kind in ["af_packet", "af_xdp", "dpdk"] {
        let keys = format!("kind = \"{kind}\"\ndevice = \"e0\"");
        let wired = |faults, names| wired(&keys, faults, names);
        assert_eq!(wired("", "[\"lan\", \"office\"]"), refused("10:10", "lan", kind));
        assert_eq!(wired("", "[\"office\", \"lan\"]"), refused("10:20", "lan", kind));
        assert_eq!(wired(faulty, "[\"worst\", \"bad\"]"), refused("22:19", "bad", kind));
    }
    let tun = "kind = \"tun\"\ndevice = \"e0\"";
    for keys in [tun, "kind = \"loopback\"", "kind = \"pcap\"\nout = \"out.pcap\""] {
        assert_eq!(wired(keys, "", "[\"lan\", \"office\"]"), Ok(()));
        assert_eq!(wired(keys, faulty, "[\"worst\", \"bad\"]"), Ok(()));
    }
}

/// A folder of a test's own, removed when dropped.
pub(super) struct Folder(pub(super) std::path::PathBuf);

impl Folder {
    pub(super) fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tamis-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    /// A configuration of the folder.
    pub(super) fn settings(&self, text: &str) -> Settings {
        let file = self.0.join("live.toml");
        Settings::from_text(file.to_str().unwrap(), text).expect("a configuration")
    }

    /// A line, without the name of the folder.
    pub(super) fn within(&self, line: &str) -> String {
        line.replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn no_frames() -> Vec<u8> {
    no_frames_of(&[LinkType::ETHERNET])
}

/// A capture of interfaces of these link types.
fn no_frames_of(types: &[LinkType]) -> Vec<u8> {
    let mut writer = NgWriter::new(Vec::new()).unwrap();
    for link_type in types {
        let interface = Interface { name: None, link_type: *link_type, snaplen: 0 };
        writer.add_interface(&interface).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn captures_for_a_tunnel_are_of_packets() {
    let folder = Folder::new("live-tunnel-captures");
    folder.write("rules.v4", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    folder.write("own.key", format!("{}=\n", "A".repeat(43)));
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(folder.0.join("own.key"), private).unwrap();
    folder.write("office.toml", "[tunnel]\nkey = \"own.key\"\n");
    let classic = |link_type| {
        ClassicWriter::new(Vec::new(), link_type, Precision::Nanos).unwrap().finish().unwrap()
    };
    let checked = |capture: Vec<u8>| {
        folder.write("in.pcap", capture);
        let text = "[[port]]\nname = \"lan\"\nkind = \"pcap\"\nfile = \"in.pcap\"\n\
             [[port]]\nname = \"bad\"\nkind = \"fault\"\nof = \"lan\"\n\
             [[port]]\nname = \"office\"\nkind = \"tunnel\"\nfile = \"office.toml\"\n\
             [[wire]]\nports = [\"office\", \"bad\"]\n[rules]\nip = \"rules.v4\"\n";
        let checked = live::check(&folder.settings(text));
        checked.map(|_| ()).map_err(|error| folder.within(&error.to_string()))
    };
    let refused = |found: &str| {
        let what = "expected a capture of link type RAW, IPV4 or IPV6 beside a tunnel";
        Err(format!("live.toml:4:8: in.pcap: {what}, found {found}"))
    };
    let (ethernet, raw) = (LinkType::ETHERNET, LinkType::RAW);
    assert_eq!(checked(classic(ethernet)), refused("ETHERNET"));
    assert_eq!(checked(no_frames_of(&[ethernet])), refused("ETHERNET"));
    assert_eq!(checked(no_frames_of(&[LinkType::LINUX_SLL, ethernet])), refused("LINUX_SLL"));
    for packets in [raw, LinkType::IPV4, LinkType::IPV6, LinkType(12)] {
        assert_eq!(checked(classic(packets)), Ok(()));
    }
    assert_eq!(checked(no_frames_of(&[ethernet, raw])), Ok(()));
    assert_eq!(checked(no_frames_of(&[])), Ok(()));
}

#[test]
fn files_that_are_named_are_looked_into() {
    let folder = Folder::new("live-files");
    folder.write("in.pcap", no_frames());
    folder.write("good.v4", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    folder.write("bad.v4", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j nowhere\nCOMMIT\n");
    folder
        .write("nat.v4", "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n");
    let text = |file: &str, out: &str, rules: &str| {
        format!(
            "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"{file}\"\n\
             [[port]]\nname = \"right\"\nkind = \"pcap\"\nout = \"{out}\"\n{WIRE}[rules]\nip = \"{rules}\"\n"
        )
    };
    let cases = [
        (text("none.pcap", "out.pcap", "good.v4"), "live.toml:4:8: none.pcap: No such file"),
        (text("good.v4", "out.pcap", "good.v4"), "live.toml:4:8: good.v4: byte 0: expected"),
        (
            text("in.pcap", "none/out.pcap", "good.v4"),
            "live.toml:8:7: none/out.pcap: expected a folder",
        ),
        (
            text("in.pcap", "in.pcap", "good.v4"),
            "live.toml:8:7: out = \"in.pcap\": expected a file of its own, found an input",
        ),
        (
            text("in.pcap", "out.pcap", "good.v4").replace("[rules]", "ttl = \"lower\"\n[rules]"),
            "live.toml:11:7: ttl = \"lower\" beside rules of ip: expected address = [\"…\"] of ip on left",
        ),
        (
            text("in.pcap", "out.pcap", "good.v4")
                .replace("[rules]\nip", "ttl = \"lower\"\n[rules]\narp"),
            "live.toml:11:7: ttl = \"lower\": expected ip or ip6 in [rules]",
        ),
        (text("in.pcap", "out.pcap", "none.v4"), "live.toml:12:6: none.v4: No such file"),
        (text("in.pcap", "out.pcap", "bad.v4"), "live.toml:12:6: bad.v4:3:"),
        (
            text("in.pcap", "out.pcap", "nat.v4"),
            "live.toml:12:6: nat.v4:3: -j MASQUERADE translates to an address of the port, and there is none of ip on left: expected",
        ),
    ];
    for (text, expected) in cases {
        let error = live::check(&folder.settings(&text)).expect_err(expected).to_string();
        let line = folder.within(&error);
        assert!(line.starts_with(expected), "{line}\nnot {expected}");
        let opener: Arc<dyn Opener> = Arc::new(InProcess);
        let opened = live::open(&folder.settings(&text), &opener, &mut ());
        assert!(opened.is_err_and(|error| error.is_input()));
    }
    let good = folder.settings(&text("in.pcap", "out.pcap", "good.v4"));
    assert!(live::check(&good).is_ok());
    assert!(!folder.0.join("out.pcap").exists(), "a check makes nothing");
}

#[test]
fn rules_that_do_nothing_on_a_wire_are_told() {
    let folder = Folder::new("live-warnings");
    folder.write(
        "rules.v4",
        "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -p tcp -j ACCEPT\n-A FORWARD -i eth0 -j ACCEPT\n\
         -A FORWARD ! -i eth0 -o ri+ -j ACCEPT\n-A FORWARD -o wan+ -j ACCEPT\nCOMMIT\n",
    );
    folder.write(
        "open.v6",
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p ipv6-icmp -j ACCEPT\nCOMMIT\n",
    );
    folder.write(
        "half.v6",
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i left -p ipv6-icmp -j ACCEPT\nCOMMIT\n",
    );
    let told = |rules: &str| {
        let settings = folder.settings(&format!("{PORTS}{WIRE}[rules]\n{rules}\n"));
        let warnings = live::check(&settings).expect("it can run").warnings;
        warnings.iter().map(|line| folder.within(line)).collect::<Vec<_>>()
    };
    assert_eq!(
        told("ip = \"rules.v4\""),
        [
            "rules.v4:4: INPUT: nothing on a wire comes to this chain",
            "rules.v4:5: -i eth0: no wire has such a port",
            "rules.v4:7: -o wan+: no wire has such a port",
            "live.toml: ip6: no rules are given for IPv6, so all of it passes",
        ]
    );
    assert_eq!(
        told("ip6 = \"open.v6\""),
        ["live.toml: ip: no rules are given for IPv4, so all of it passes"]
    );
    let half = told("ip6 = \"half.v6\"");
    assert!(
        half[1].starts_with("half.v6: neighbour discovery from right to left is dropped"),
        "{half:?}"
    );
}
