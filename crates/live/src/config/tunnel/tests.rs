//! What is refused, and where; what is printed is read back.

use std::fs::{self, Permissions};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ::tunnel::{Prefix, PresharedKey, PrivateKey, PublicKey};
use proptest::prelude::*;
use tempfile::TempDir;

use super::super::{At, ConfigError, MetricsSettings, Named, Privileges, RulesSettings};
use super::*;
use rules::model::Family;

const OWN: [u8; 32] = [1; 32];
const HOME: &str = "CgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCk=";
const AWAY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The key of a signer.
const SIGNER: &str = "SsxVTCi7f9jgn-3dZUQU5F2uU9nLUNwBgxSCwI1aYqE";

/// A folder with `office.key` and `home.psk`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_secret(&folder, "office.key", &format!("{}\n", *PrivateKey::new(OWN).text()));
    write_secret(&folder, "home.psk", &PresharedKey::new([7; 32]).text());
    folder
}

fn write_secret(folder: &TempDir, name: &str, text: &str) {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
}

fn read(folder: &TempDir, text: &str) -> Result<TunnelSettings, ConfigError> {
    let file = folder.path().join("office.toml");
    fs::write(&file, text).unwrap();
    TunnelSettings::read(&file)
}

const WHOLE: &str = r#"
[tunnel]
name = "wg-office"
key = "office.key"
address = ["10.77.0.1/24", "fd77::1/64", "10.78.0.1"]
listen = 51900
mtu = 1400
ciphers = "chacha20-poly1305"
mark = 0x10
device = "eth0"
dscp = "copy"
dns = ["10.77.0.53"]
search = ["corp", "example.org"]
table = 100
pre_up = ["true"]
post_up = ["one", "two"]
rules = "office.rules"
rules6 = "/etc/office.rules6"
ipset = "sets"
bans = "bans"
workers = 2
privileges = "required"
control = "office.sock"
metrics = "127.0.0.1:9101"

[[peer]]
name = "home"
key = "CgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCk="
preshared = "home.psk"
endpoint = "home.example.org:51900"
allowed = ["10.77.0.2/32", "192.168.7.9/24"]
keepalive = 25

[[peer]]
key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
endpoint = "[2001:db8::1]:7"
"#;

#[test]
fn a_whole_file_is_read() {
    let folder = folder();
    let read = read(&folder, WHOLE).unwrap();
    let beside = |name: &str| folder.path().join(name);
    assert_eq!(
        (&*read.name, read.listen, read.mtu, read.mark),
        ("wg-office", 51900, 1400, Some(16))
    );
    assert_eq!(read.key.as_bytes(), &OWN);
    assert_eq!(read.key_file, Named { path: beside("office.key"), at: At { line: 4, column: 7 } });
    let addresses = [("10.77.0.1", 24), ("fd77::1", 64), ("10.78.0.1", 32)];
    assert_eq!(read.addresses, addresses.map(|(addr, bits)| (addr.parse().unwrap(), bits)));
    assert_eq!((read.ciphers, read.dscp), (Ciphers::ChaCha20Poly1305, Dscp::Copy));
    assert_eq!((read.table, read.workers), (Table::Number(100), 2));
    assert_eq!(read.hooks.post_up, ["one", "two"]);
    assert_eq!(read.search, ["corp", "example.org"]);
    assert_eq!(read.rules[1].family, Family::Ipv6);
    assert_eq!(read.rules[1].file.path, PathBuf::from("/etc/office.rules6"));
    assert_eq!(read.control, beside("office.sock"));
    assert_eq!(read.privileges, Privileges::Required);
    let [home, away] = &read.peers[..] else { panic!("{:?}", read.peers) };
    assert_eq!((&*home.name, home.keepalive), ("home", Some(25)));
    assert_eq!(*home.preshared.text(), *PresharedKey::new([7; 32]).text());
    assert_eq!(home.endpoint.as_ref().unwrap().name(), Some("home.example.org"));
    let prefix = |addr: &str, bits| Prefix::new(addr.parse().unwrap(), bits).unwrap();
    assert_eq!(home.allowed, [prefix("10.77.0.2", 32), prefix("192.168.7.0", 24)]);
    assert_eq!(home.at, At { line: 30, column: 12 });
    assert_eq!((&*away.name, away.keepalive), ("AAECAwQF", None));
    assert_eq!(away.endpoint.as_ref().unwrap().address(), "[2001:db8::1]:7".parse().ok());
}

#[test]
fn what_is_not_said_is_as_documented() {
    let folder = folder();
    let read = read(&folder, "[tunnel]\nkey = \"office.key\"").unwrap();
    assert_eq!((&*read.name, read.listen, read.mtu, read.mark), ("office", 0, 1420, None));
    assert_eq!((read.dscp, read.table, read.workers), (Dscp::Fixed(0), Table::Auto, 1));
    assert_eq!(read.control, PathBuf::from("/run/tamis/office.sock"));
    assert!(read.peers.is_empty() && read.addresses.is_empty() && read.metrics.is_none());
}

#[test]
fn routes_that_would_take_outer_datagrams_bring_a_mark() {
    let folder = folder();
    let peer = |allowed: &str| {
        format!("[tunnel]\nkey = \"office.key\"\n[[peer]]\nkey = \"{HOME}\"\nallowed = [{allowed}]")
    };
    assert_eq!(read(&folder, &peer("\"::/0\"")).unwrap().mark, Some(MARK));
    assert_eq!(read(&folder, &peer("\"0.0.0.0/1\"")).unwrap().mark, None);
    // The way to a peer would lead to that peer.
    let endpoint = |at: &str| peer("\"192.0.2.0/24\"") + &format!("\nendpoint = \"{at}:9\"");
    assert_eq!(read(&folder, &endpoint("192.0.2.7")).unwrap().mark, Some(MARK));
    assert_eq!(read(&folder, &endpoint("192.0.3.7")).unwrap().mark, None);
}

/// A line that is added to `[tunnel]`, or to a `[[peer]]`, what it is refused with, and the column.
fn refused(folder: &TempDir, text: &str, line: usize, column: usize, what: &str) {
    let error = read(folder, text).expect_err(text);
    let found = error.to_string();
    assert!(found.contains(what), "{text}\n{found}\n{what}");
    assert_eq!(error.at, At { line, column }, "{text}\n{found}");
}

#[test]
fn what_a_tunnel_cannot_be_is_refused_where_it_stands() {
    let folder = folder();
    let cases = [
        ("nane = 1", 1, "expected one of name key address"),
        ("name = \"..\"", 8, "expected 1 to 15 letters"),
        ("name = \"-x\"", 8, "expected 1 to 15 letters"),
        ("name = \"a/b\"", 8, "expected 1 to 15 letters"),
        ("name = \"0123456789abcdef\"", 8, "expected 1 to 15 letters"),
        ("name = \"host\"", 8, "\"host\" is the port of this host"),
        ("name = 1", 8, "expected a string, found integer"),
        ("address = \"10.0.0.1\"", 11, "expected a list of addresses"),
        ("address = [\"10.0.0.1\", \"10.0.0.0.1\"]", 24, "expected the address of a host"),
        ("address = [\"0.0.0.0/0\"]", 12, "expected the address of a host"),
        ("address = [\"ff02::1\"]", 12, "expected the address of a host"),
        ("address = [\"10.0.0.1/33\"]", 12, "expected the address of a host"),
        ("address = [\"10.0.0.1/8\", \"10.0.0.1/9\"]", 26, "expected each address once"),
        ("listen = 65536", 10, "expected a whole number from 0 to 65535"),
        ("mtu = 575", 7, "expected at least 576, found 575"),
        ("mtu = 65441", 7, "expected a whole number from 0 to 65440"),
        ("mtu = 1279\naddress = [\"fd77::1\"]", 7, "at least 1280 beside an IPv6 address"),
        ("ciphers = \"aes\"", 11, "expected one of auto aes-256-gcm chacha20-poly1305"),
        ("mark = 0", 8, "expected a whole number from 1"),
        ("device = \"\"", 10, "expected the name of an interface"),
        ("speed = \"on\"", 9, "expected one of answer off"),
        ("dscp = 64", 8, "expected a whole number from 0 to 63"),
        ("dscp = \"keep\"", 8, "expected one of copy"),
        ("dscp = true", 8, "expected \"copy\" or a number from 0 to 63"),
        ("dns = [\"resolver\"]", 8, "expected the address of a server"),
        ("search = [\"a b\"]", 11, "expected a domain"),
        ("table = \"main\"", 9, "expected one of auto off"),
        ("table = 0", 9, "expected a whole number from 1"),
        ("table = []", 9, "expected \"auto\", \"off\" or the number of a table"),
        ("post_up = [\" \"]", 12, "expected a command"),
        ("rules = \"\"", 9, "expected the name of a file"),
        ("workers = 0", 11, "expected a whole number from 1 to 64"),
        ("privileges = \"keep\"", 14, "expected one of auto required off"),
        ("control = 1", 11, "expected a string"),
        ("metrics = \"9101\"", 11, "expected an address with a port"),
    ];
    for (line, column, what) in cases {
        refused(&folder, &format!("[tunnel]\nkey = \"office.key\"\n{line}"), 3, column, what);
    }
    refused(&folder, "", 1, 1, "expected [tunnel]");
    refused(&folder, "[tunnel]\n", 1, 1, "expected key = … in this [tunnel]");
    refused(&folder, "[[tunnel]]\n", 1, 1, "expected a table, found array");
    refused(&folder, "[tunnel]\nkey = \n", 2, 7, "TOML");
    refused(&folder, "[port]\n", 1, 2, "expected one of tunnel peer");
}

#[test]
fn what_a_node_cannot_be_is_refused_where_it_stands() {
    let folder = folder();
    let good = [
        "name = \"Laptop\"",
        "domain = \"home.internal\"",
        "directory = \"10.99.0.1\"",
        &format!("signer = \"{SIGNER}\""),
    ];
    let text = |lines: [&str; 4], addresses: &str| {
        let tunnel = format!("[tunnel]\nkey = \"office.key\"\naddress = [{addresses}]\n");
        format!("{tunnel}[cloud]\n{}\n", lines.join("\n"))
    };
    let cloud = read(&folder, &text(good, "\"10.99.0.2/16\"")).unwrap().cloud.unwrap();
    assert_eq!((cloud.name.as_str(), &*cloud.domain), ("laptop", "home.internal"));
    refused(&folder, &text(good, "\"fd00::2/64\""), 4, 1, "expected an IPv4 address in [tunnel]");
    for (line, bad, column, what) in [
        (0, "name = \"a.b\"", 8, "expected the name of a node, found \"a.b\""),
        (1, "domain = \"a b\"", 10, "expected a domain, found \"a b\""),
        (2, "directory = \"fd00::1\"", 13, "expected the directory's IPv4 address"),
        (2, "directory = \"10.99.0.1\"\nauthority = \"x\"", 13, "expected the authority's IPv4"),
        (3, "signer = \"AAAA\"", 10, "expected the key of a signer"),
        (2, "directory = \"10.99.0.1\"\ntcp = 70000", 7, "expected a whole number from 0"),
        (3, "sign = 1", 1, "expected one of name domain directory also authority"),
        (2, "directory = \"10.99.0.1\"\nalso = [\"192.0.2.1\"]", 9, "expected ADDRESS:PORT or"),
    ] {
        let mut lines = good;
        lines[line] = bad;
        let line = 5 + line + bad.lines().count() - 1;
        refused(&folder, &text(lines, "\"10.99.0.2/16\""), line, column, what);
    }
}

#[test]
fn what_a_peer_cannot_be_is_refused_where_it_stands() {
    let folder = folder();
    let own = PrivateKey::new(OWN).public();
    let cases = [
        (format!("key = \"{HOME}\"\nhost = 1"), 6, 1, "expected one of name key preshared"),
        ("name = \"x\"".to_owned(), 4, 1, "expected key = … in this [[peer]]"),
        ("key = \"abc\"".to_owned(), 5, 7, "expected a public key"),
        (format!("key = \"{own}\""), 5, 7, "found that of this one"),
        (format!("key = \"{AWAY}\""), 5, 7, "expected a key of its own"),
        (format!("key = \"{HOME}\"\nname = \"away\""), 6, 8, "expected a name of its own"),
        (format!("key = \"{HOME}\"\nname = \"a b\""), 6, 8, "expected 1 to 64 bytes"),
        (format!("key = \"{HOME}\"\nendpoint = \"home\""), 6, 12, "expected ADDRESS:PORT"),
        (format!("key = \"{HOME}\"\nendpoint = \"::1:9\""), 6, 12, "expected ADDRESS:PORT"),
        (format!("key = \"{HOME}\"\nallowed = [\"10/8\"]"), 6, 12, "expected a prefix"),
        (
            format!("key = \"{HOME}\"\nallowed = [\"10.0.0.9/24\", \"10.1.0.9/16\"]"),
            6,
            27,
            "expected each prefix once, and 10.1.0.0/16 is \"away\"'s",
        ),
        (
            format!("key = \"{HOME}\"\nname = \"h\"\nallowed = [\"10.0.0.1\", \"10.0.0.1/32\"]"),
            7,
            24,
            "and 10.0.0.1/32 is \"h\"'s",
        ),
        (format!("key = \"{HOME}\"\nkeepalive = 65536"), 6, 13, "from 0 to 65535"),
        (format!("key = \"{HOME}\"\npreshared = \"none.psk\""), 6, 13, "none.psk: No such file"),
    ];
    for (lines, line, column, what) in cases {
        let away =
            format!("[[peer]]\nname = \"away\"\nkey = \"{AWAY}\"\nallowed = [\"10.1.0.0/16\"]\n");
        let text = format!("[tunnel]\nkey=\"office.key\"\n\n[[peer]]\n{lines}\n");
        // The one before it stands after it where the other lines are to be counted from the top.
        let text = match what {
            what if what.contains("own") || what.contains("away") => {
                let at = away.lines().count();
                let text = format!("[tunnel]\nkey=\"office.key\"\n{away}[[peer]]\n{lines}\n");
                refused(&folder, &text, line + at - 1, column, what);
                continue;
            }
            _ => text,
        };
        refused(&folder, &text, line, column, what);
    }
    let one = "[tunnel]\nkey = \"office.key\"\n[peer]\n";
    refused(&folder, one, 3, 1, "expected [[peer]], a table for each, found table");
}

#[test]
fn files_with_keys_that_others_may_reach_are_refused() {
    let folder = folder();
    let key = folder.path().join("office.key");
    let text = "[tunnel]\nkey = \"office.key\"\n";
    for mode in [0o400, 0o600, 0o700] {
        fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        read(&folder, text).unwrap();
    }
    for bit in 0..6 {
        fs::set_permissions(&key, Permissions::from_mode(0o600 | 1 << bit)).unwrap();
        let what = format!("chmod 600 {}", key.display());
        refused(&folder, text, 2, 7, &what);
    }
    fs::remove_file(&key).unwrap();
    refused(&folder, text, 2, 7, "office.key: No such file");
    fs::create_dir(&key).unwrap();
    refused(&folder, text, 2, 7, "office.key: is a directory");
    fs::remove_dir(&key).unwrap();
    for bad in ["", "key", &format!("{HOME}{HOME}"), &"a".repeat(1 << 20)] {
        write_secret(&folder, "office.key", bad);
        refused(&folder, text, 2, 7, "expected a key, 44 characters");
    }
}

#[test]
fn a_file_that_is_not_there_or_is_no_text_is_an_error_of_the_file() {
    let error = TunnelSettings::read(Path::new("/none/office.toml")).unwrap_err();
    assert!(error.to_string().starts_with("/none/office.toml:1:1: No such file"), "{error}");
    let folder = folder();
    let file = folder.path().join("noise.toml");
    fs::write(&file, [0xff; 9]).unwrap();
    assert_eq!(TunnelSettings::read(&file).unwrap_err().at, At { line: 1, column: 1 });
}

#[test]
fn endpoints_are_addresses_or_names() {
    for text in ["10.0.0.1:1", "[::1]:65535", "a:1", "a-b.c_d.example.:51900", "1a:2"] {
        let endpoint: Endpoint = text.parse().expect(text);
        assert_eq!(endpoint.to_string(), text);
        assert_ne!(endpoint.name().is_some(), endpoint.address().is_some(), "{text}");
    }
    let bad = [
        "",
        ":",
        "a",
        "a:",
        "a:0",
        "a:65536",
        "a:+1",
        ":1",
        "::1:1",
        "[a]:1",
        "[10.0.0.1]:1",
        "a b:1",
        "10.0.0.300:1",
        "10:1",
        "-a:1",
        "a..b:1",
        "a/b:1",
    ];
    for text in bad {
        assert!(text.parse::<Endpoint>().is_err(), "{text}");
    }
    assert!(format!("{}:1", "a".repeat(64)).parse::<Endpoint>().is_err());
}

prop_compose! {
    fn prefix()(v6: bool, bits: u128, len in 0_u8..=128) -> Prefix {
        let (address, len) = match v6 {
            true => (IpAddr::V6(bits.into()), len),
            false => (IpAddr::V4((bits as u32).into()), len % 33),
        };
        Prefix::new(address, len).unwrap()
    }
}

prop_compose! {
    fn peer()(
        key: [u8; 32],
        preshared: bool,
        endpoint in prop_oneof![
            Just(None),
            "[a-z][a-z0-9]{0,9}(\\.[a-z]{2,5})?:[1-9][0-9]{0,3}".prop_map(|text| text.parse().ok()),
            any::<([u8; 16], u16)>().prop_map(|(ip, port)| {
                format!("[{}]:{}", std::net::Ipv6Addr::from(ip), port.max(1)).parse().ok()
            }),
        ],
        allowed in prop::collection::vec(prefix(), 0..4),
        keepalive in prop::option::of(1..=u16::MAX),
        name in "[^\\s\\p{C}]{1,16}",
    ) -> (PeerSettings, bool) {
        let peer = PeerSettings {
            endpoint,
            allowed,
            keepalive,
            ..PeerSettings::new(name, PublicKey::new(key), At { line: 1, column: 1 })
        };
        (peer, preshared)
    }
}

prop_compose! {
    fn whole()(
        name in "[a-z0-9_=+][a-z0-9_=+.-]{0,14}",
        addresses in prop::collection::hash_map(
            prop_oneof![
                any::<[u8; 3]>().prop_map(|[a, b, c]| IpAddr::from([10, a, b, c])),
                any::<[u8; 15]>().prop_map(|low| {
                    let mut ip = [0xfd; 16];
                    ip[1..].copy_from_slice(&low);
                    IpAddr::from(ip)
                }),
            ],
            0_u8..=32,
            0..3,
        ),
        numbers: (u16, [bool; 4]),
        mtu in 1280_u16..=65_440,
        ciphers in prop_oneof![
            Just(Ciphers::Auto), Just(Ciphers::Aes256Gcm), Just(Ciphers::ChaCha20Poly1305)
        ],
        mark in 1..=u32::MAX,
        answers_speed in any::<bool>(),
        dscp in prop_oneof![Just(Dscp::Copy), (0_u8..64).prop_map(Dscp::Fixed)],
        table in prop_oneof![
            Just(Table::Auto), Just(Table::Off), (1..=u32::MAX).prop_map(Table::Number)
        ],
        commands in prop::collection::vec("\\PC*[^\\s\\p{C}]\\PC*", 0..3),
        search in prop::collection::vec("[a-z]{1,9}", 0..3),
        dns in prop::collection::vec(any::<[u8; 4]>().prop_map(IpAddr::from), 0..3),
        privileges in prop_oneof![
            Just(Privileges::Auto), Just(Privileges::Required), Just(Privileges::Off)
        ],
        workers in 1_usize..=64,
        peers in prop::collection::vec(peer(), 0..4),
    ) -> (TunnelSettings, Vec<bool>) {
        let (listen, [has_device, has_rules, has_lists, has_control]) = numbers;
        let named = |name: &str| Named { path: name.into(), at: At { line: 1, column: 1 } };
        let rules = [(Family::Ipv4, "o.rules"), (Family::Ipv6, "/etc/o \"6\".rules")];
        let rules = rules.map(|(family, file)| RulesSettings { family, file: named(file) });
        let control = if has_control { "o.sock".into() } else { TunnelSettings::control_of(&name) };
        let mut peers: Vec<(PeerSettings, bool)> = peers;
        let mut had = std::collections::HashSet::new();
        let mut names = std::collections::HashSet::new();
        for (peer, _) in &mut peers {
            peer.allowed.retain(|prefix| had.insert(*prefix));
        }
        peers.retain(|(peer, _)| names.insert(peer.name.clone()));
        let (peers, preshared): (Vec<_>, Vec<_>) = peers.into_iter().unzip();
        let has_v4 = addresses.keys().any(IpAddr::is_ipv4);
        let cloud = (has_v4 && has_lists).then(|| CloudSettings {
            name: "laptop".parse().unwrap(),
            domain: "home.internal".to_owned(),
            directory: [10, 99, 0, 1].into(),
            also: has_rules.then(|| "[2001:db8::1]:51900".parse().unwrap()).into_iter().collect(),
            authority: has_rules.then_some([10, 99, 255, 254].into()),
            signer: SIGNER.parse().unwrap(),
            tcp: has_device.then_some(443),
        });
        let settings = TunnelSettings {
            file: String::new(),
            name,
            key: PrivateKey::new(OWN),
            key_file: named("office.key"),
            addresses: addresses.into_iter().collect(),
            listen,
            mtu,
            ciphers,
            mark: Some(mark),
            device: has_device.then(|| "eth0".to_owned()),
            dscp,
            answers_speed,
            dns,
            search,
            table,
            hooks: Hooks { post_up: commands.clone(), pre_down: commands, ..Hooks::default() },
            rules: rules.into_iter().filter(|_| has_rules).collect(),
            ipset: has_lists.then(|| named("sets")),
            bans: has_lists.then(|| named("../bans")),
            workers,
            privileges,
            control,
            metrics: has_lists.then(|| MetricsSettings {
                listen: "[::1]:9".parse().unwrap(),
                rules: false,
                names: Vec::new(),
            }),
            cloud,
            peers,
        };
        (settings, preshared)
    }
}

/// The settings with every place in the file the same, and every path relative to the folder.
fn placeless(mut settings: TunnelSettings, folder: &Path) -> String {
    let at = At { line: 1, column: 1 };
    let strip = |path: &mut PathBuf| *path = path.strip_prefix(folder).unwrap_or(path).to_owned();
    let mut named = vec![&mut settings.key_file];
    named.extend(settings.rules.iter_mut().map(|rules| &mut rules.file));
    named.extend(settings.ipset.iter_mut().chain(&mut settings.bans));
    let mut keys = String::new();
    for peer in &mut settings.peers {
        peer.at = at;
        keys.push_str(&peer.preshared.text());
        named.extend(&mut peer.preshared_file);
    }
    for named in named {
        named.at = at;
        strip(&mut named.path);
    }
    strip(&mut settings.control);
    settings.file.clear();
    format!("{settings:#?} {} {keys}", *settings.key.text())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_printed_is_read_back((mut settings, preshared) in whole()) {
        let folder = folder();
        for (peer, _) in settings.peers.iter_mut().zip(preshared).filter(|(_, has)| *has) {
            let at = At { line: 1, column: 1 };
            peer.preshared_file = Some(Named { path: "home.psk".into(), at });
            peer.preshared = PresharedKey::new([7; 32]);
        }
        let text = settings.to_toml();
        let again = read(&folder, &text);
        let again = again.map_err(|error| TestCaseError::fail(format!("{text}\n{error}")))?;
        prop_assert_eq!(placeless(again, folder.path()), placeless(settings, folder.path()));
    }

    #[test]
    fn no_text_panics(text in "\\PC*", key in "[a-z_0-9]{1,9}", value in "\\PC{0,20}") {
        let folder = folder();
        let _ = read(&folder, &text);
        let _ = read(&folder, &format!("[tunnel]\nkey = \"office.key\"\n{key} = \"{value}\""));
    }
}
