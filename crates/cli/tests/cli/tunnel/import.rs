//! `tamis tunnel import`: files as users of wg-quick write them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use live::config::tunnel::{Table, TunnelSettings};

use crate::ran::{Ran, Scratch, tamis};

const OWN: &str = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
const HOME: &str = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=";
const AWAY: &str = "CgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCk=";
const SHARED: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Imports a text as `wg0.conf`.
fn import(folder: &Scratch, text: &str) -> Ran {
    let file = folder.write("wg0.conf", text);
    tamis(&["tunnel", "import", &file, "--out", &folder.file("out")])
}

fn folder(test: &str) -> Scratch {
    let folder = Scratch::new(test);
    fs::create_dir(folder.file("out")).unwrap();
    folder
}

/// What was imported, read as `up` reads it, and the lines that say what does not carry over.
fn imported(folder: &Scratch, text: &str) -> (TunnelSettings, Vec<String>) {
    let ran = import(folder, text);
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
    let lost = ran.out.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned);
    let file = folder.file("out/wg0.toml");
    assert!(ran.out.ends_with(&format!("next: tamis tunnel up {file}\n")), "{}", ran.out);
    (TunnelSettings::read(file.as_ref()).unwrap(), lost.collect())
}

fn allowed(settings: &TunnelSettings, peer: usize) -> Vec<String> {
    let allowed = settings.peers[peer].allowed.iter();
    allowed.map(|prefix| format!("{}/{}", prefix.address(), prefix.len())).collect()
}

#[test]
fn a_road_warrior_with_comments_and_all_routes() {
    let folder = folder("import-warrior");
    let text = format!(
        "# from my provider\n\n[Interface]\nPrivateKey = {OWN}   # keep it secret\n\
         Address = 10.14.0.2/16, fd00:14::2/128\nDNS = 10.14.0.1,fd00:14::1, corp.example, lan\n\
         \n[Peer]\n# home\nPublicKey={HOME}\nPresharedKey={SHARED}\n\
         AllowedIPs = 0.0.0.0/0, ::/0\nEndpoint = [2001:db8::7]:51820\n\
         PersistentKeepalive = 25\n#AllowedIPs = 10.0.0.0/8\n"
    );
    let (settings, lost) = imported(&folder, &text);
    assert_eq!(settings.name, "wg0");
    assert_eq!(*settings.key.text(), OWN);
    let addresses: Vec<String> =
        settings.addresses.iter().map(|(addr, bits)| format!("{addr}/{bits}")).collect();
    assert_eq!(addresses, ["10.14.0.2/16", "fd00:14::2/128"]);
    let dns: Vec<String> = settings.dns.iter().map(ToString::to_string).collect();
    assert_eq!(dns, ["10.14.0.1", "fd00:14::1"]);
    assert_eq!(settings.search, ["corp.example", "lan"]);
    let home = &settings.peers[0];
    assert_eq!((&*home.name, home.keepalive), ("home", Some(25)));
    assert_eq!(home.key.to_string(), HOME);
    assert_eq!(*home.preshared.text(), SHARED);
    assert_eq!(home.endpoint.as_ref().unwrap().to_string(), "[2001:db8::7]:51820");
    assert_eq!(allowed(&settings, 0), ["0.0.0.0/0", "::/0"]);
    assert_eq!(settings.mark, Some(0x7461), "outer datagrams do not take the default route");
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].contains("not WireGuard's"), "{lost:?}");
    for secret in ["out/wg0.key", "out/wg0-1.psk"] {
        let mode = fs::metadata(folder.file(secret)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{secret}");
    }
    let toml = fs::read_to_string(folder.file("out/wg0.toml")).unwrap();
    assert!(!toml.contains(OWN) && !toml.contains(SHARED), "secrets are in files of their own");
}

#[test]
fn a_server_with_commands_and_many_peers() {
    let folder = folder("import-server");
    let text = format!(
        "[Interface]\r\nAddress = 10.8.0.1/24\r\nAddress = 10.9.0.1/24\r\nSaveConfig = true\r\n\
         ListenPort = 51820\r\nPrivateKey = {OWN}\r\nMTU = 1380\r\n\
         PostUp = iptables -A FORWARD -i %i -j ACCEPT; iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE\r\n\
         PostUp = echo up %i\r\nPostUp = wg set %i fwmark 51820\r\n\
         PreDown = echo \"wg-like words\"\r\nPostDown = iptables -D FORWARD -i %i -j ACCEPT\r\n\
         # Name = phone\r\n[Peer]\r\nPublicKey = {HOME}\r\nAllowedIPs = 10.8.0.2/32\r\nAllowedIPs = 10.8.0.3\r\n\
         \r\n[peer]\r\npublickey = {AWAY}\r\nallowedips = 10.8.0.3/32,10.9.0.0/24\r\nEndpoint = vpn.example.org:51820\r\n\
         persistentkeepalive = off\r\n"
    );
    let (settings, lost) = imported(&folder, &text);
    assert_eq!((settings.listen, settings.mtu, settings.addresses.len()), (51820, 1380, 2));
    let rules = "iptables -A FORWARD -i wg0 -j ACCEPT; iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE";
    assert_eq!(settings.hooks.post_up, [rules, "echo up wg0"]);
    assert_eq!(settings.hooks.pre_down, ["echo \"wg-like words\""]);
    assert_eq!(settings.hooks.post_down, ["iptables -D FORWARD -i wg0 -j ACCEPT"]);
    let names: Vec<&str> = settings.peers.iter().map(|peer| &*peer.name).collect();
    assert_eq!(names, ["phone", "peer2"]);
    // As in WireGuard, the last peer with a prefix has it.
    assert_eq!(allowed(&settings, 0), ["10.8.0.2/32"]);
    assert_eq!(allowed(&settings, 1), ["10.8.0.3/32", "10.9.0.0/24"]);
    assert_eq!(settings.peers[1].keepalive, None);
    assert_eq!(settings.peers[1].endpoint.as_ref().unwrap().name(), Some("vpn.example.org"));
    let [_, saved, wg, moved] = &lost[..] else { panic!("{lost:?}") };
    assert!(saved.starts_with("line 4: SaveConfig: "), "{saved}");
    assert!(wg.starts_with("line 10: PostUp = wg set %i fwmark 51820: wg knows nothing"), "{wg}");
    assert_eq!(
        moved,
        "AllowedIPs 10.8.0.3/32 of phone: peer2 has it after it, so it is not the former's"
    );
}

#[test]
fn a_router_with_tables_and_marks_of_its_own() {
    let folder = folder("import-router");
    let of = |table: &str| {
        format!(
            "[Interface]\nPrivateKey={OWN}\nTable = {table}\nFwMark = 0xca6c\nJc = 4\n[Peer]\nPublicKey={HOME}\n"
        )
    };
    let cases = [("off", Table::Off), ("auto", Table::Auto), ("1234", Table::Number(1234))];
    for (written, table) in cases.into_iter().chain([("main", Table::Number(254))]) {
        let (settings, lost) = imported(&folder, &of(written));
        assert_eq!((settings.table, settings.mark), (table, Some(0xca6c)));
        assert_eq!(lost[1..], ["line 5: Jc: a tunnel here has no such thing"]);
        fs::remove_dir_all(folder.file("out")).unwrap();
        fs::create_dir(folder.file("out")).unwrap();
    }
    let (settings, lost) = imported(&folder, &of("vpn"));
    assert_eq!(settings.table, Table::Off);
    assert!(lost[1].starts_with("line 3: Table = vpn: tables have numbers here"), "{lost:?}");
}

#[test]
fn names_of_peers_are_what_comments_say_if_they_can_be() {
    let folder = folder("import-names");
    let peer = |comment: &str, number: u8| {
        let key = tunnel::PublicKey::new([number; 32]);
        format!("{comment}\n[Peer]\nPublicKey = {key}\n\n")
    };
    let comments = [
        ("# Alice's  phone", "Alice's-phone"),
        ("# friendly_name=bob", "bob"),
        ("# Endpoint = 192.0.2.1:51820", "peer3"),
        ("# bob", "peer4"),
        ("#", "peer5"),
        ("# peer7", "peer7"),
        ("", "peer8"),
        ("# \u{1b}[2J", "peer9"),
    ];
    let peers = comments.iter().zip(1..).map(|((comment, _), number)| peer(comment, number));
    let text = format!("[Interface]\nPrivateKey = {OWN}\n\n{}", peers.collect::<String>());
    let (settings, _) = imported(&folder, &text);
    let names: Vec<&str> = settings.peers.iter().map(|peer| &*peer.name).collect();
    assert_eq!(names, comments.map(|(_, name)| name));
}

#[test]
fn what_is_wrong_is_told_by_line_and_column_and_leaves_nothing() {
    let folder = folder("import-wrong");
    let begin = format!("[Interface]\nPrivateKey = {OWN}\n");
    let cases = [
        (String::new(), "1:1: expected [Interface]"),
        ("Address = 10.0.0.1\n".to_owned(), "1:1: expected [Interface] or [Peer] before it"),
        ("[Interface]\nAddress = 10.0.0.1\n".to_owned(), "1:1: expected PrivateKey = … in this"),
        (format!("{begin}[Interface]\n"), "3:1: expected one [Interface], found another"),
        (format!("{begin}[Pear]\n"), "3:1: expected [Interface], [Peer] or KEY = VALUE"),
        (format!("{begin}[Peer]\n"), "3:1: expected PublicKey = … in this [Peer]"),
        (format!("{begin}[Peer]\nPublicKey = x\n"), "4:13: PublicKey: expected a key"),
        (format!("{begin}  ListenPort =  x\n"), "3:17: ListenPort: expected a port, found \"x\""),
        (
            format!("{begin}Address = 10.0.0.1,  10.0.0.300/8\n"),
            "3:22: Address: expected an address",
        ),
        (
            format!("{begin}Address = 10.0.0.1,10.0.0.1\n"),
            "3:20: Address: expected each address once",
        ),
        (format!("{begin}DNS = 1.1.1.1, a b\n"), "3:16: DNS: expected the address of a server"),
        (format!("{begin}FwMark = x\n"), "3:10: FwMark: expected a mark, or off"),
        (
            format!("{begin}[Peer]\nPublicKey={HOME}\n[Peer]\nPublicKey={HOME}\n"),
            "6:11: PublicKey: expected a key of its own",
        ),
        (
            format!("{begin}[Peer]\nPublicKey={HOME}\nAllowedIPs = 10.0.0.0/8, 10.0.0.0/33\n"),
            "5:26: AllowedIPs: expected a prefix",
        ),
        (
            format!("{begin}[Peer]\nPublicKey={HOME}\nEndpoint = ::1:51820\n"),
            "5:12: Endpoint: expected",
        ),
        (
            format!("{begin}[Peer]\nPublicKey={HOME}\nPersistentKeepalive = 1m\n"),
            "5:23: PersistentKeepalive: expected seconds, or off",
        ),
    ];
    for (text, what) in cases {
        let ran = import(&folder, &text);
        let file = folder.file("wg0.conf");
        assert!(ran.refusal().starts_with(&format!("{file}:{what}")), "{ran:?}\n{what}");
        assert_eq!(fs::read_dir(folder.file("out")).unwrap().count(), 0, "{text}");
    }
    // A secret is not shown, whatever it is.
    let ran = import(&folder, "[Interface]\nPrivateKey = hunter2\n");
    assert!(ran.refusal().ends_with("2:14: PrivateKey: expected a key, 44 characters of base64"));
    // What wg-quick takes and a tunnel here cannot be.
    let ran = import(&folder, &format!("{begin}MTU = 200\n"));
    assert!(ran.refusal().contains("expected at least 576, found 200"), "{ran:?}");
    assert_eq!(fs::read_dir(folder.file("out")).unwrap().count(), 0);
}

#[test]
fn nothing_is_written_over() {
    let folder = folder("import-over");
    let text = format!("[Interface]\nPrivateKey = {OWN}\n");
    fs::write(folder.file("out/wg0.toml"), "mine").unwrap();
    let ran = import(&folder, &text);
    assert!(ran.refusal().contains("wg0.toml: File exists"), "{ran:?}");
    let left: Vec<_> = fs::read_dir(folder.file("out")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "the key that was written is gone again");
    assert_eq!(fs::read_to_string(folder.file("out/wg0.toml")).unwrap(), "mine");
    let file = folder.write("a name that is none.conf", &text);
    let ran = tamis(&["tunnel", "import", &file]);
    assert!(ran.refusal().contains("1:1: expected a file that is named after its interface"));
}
