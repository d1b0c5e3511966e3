//! Where packets go on a small router, and files of every kind of nonsense.

use host::{FrameKind, Host, Incoming, Missing, Outgoing, Reached, Refused, Routed};
use proptest::prelude::*;

const ROUTES: &str = "\
default via 192.0.2.254 dev wan0
10.1.0.0/24 dev lan0 proto kernel scope link src 10.1.0.1
192.0.2.0/24 dev wan0 proto kernel scope link src 192.0.2.1
blackhole 10.66.0.0/16
local 10.1.0.1 dev lan0 table local proto kernel scope host src 10.1.0.1
broadcast 10.1.0.255 dev lan0 table local proto kernel scope link src 10.1.0.1
local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1
local 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.1
local 192.0.2.1 dev wan0 table local proto kernel scope host src 192.0.2.1
2001:db8:1::/64 dev lan0 proto kernel metric 256 pref medium
fe80::/64 dev lan0 proto kernel metric 256 pref medium
fe80::/64 dev wan0 proto kernel metric 256 pref medium
default via fe80::1 dev wan0 metric 1024 pref medium
local ::1 dev lo table local proto kernel metric 0 pref medium
local 2001:db8:1::1 dev lan0 table local proto kernel metric 0 pref medium
local fe80::a dev lan0 table local proto kernel metric 0 pref medium
anycast 2001:db8:1:: dev lan0 table local proto kernel metric 0 pref medium
";

const LINKS: &str = r"2: lan0: <BROADCAST,UP> mtu 1500\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
3: wan0: <BROADCAST,UP> mtu 1492\    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff
";

fn host(files: &[(&str, &str)]) -> Host {
    let text =
        |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| text.to_string());
    Host::read(text).expect("good text")
}

fn packet(source: &str, destination: &str, input: &'static str) -> Incoming<'static> {
    Incoming::new(
        source.parse().expect("good text"),
        destination.parse().expect("good text"),
        Some(input),
    )
}

fn router() -> Host {
    host(&[("routes.txt", ROUTES), ("links.txt", LINKS)])
}

#[test]
fn where_packets_of_a_router_go() {
    let router = router();
    let forward = |output, mtu| Routed::Forward { output: Some(output), mtu: Some(mtu) };
    for (source, destination, input, goes) in [
        ("10.1.0.9", "8.8.8.8", "lan0", forward("wan0", 1492)),
        ("8.8.8.8", "10.1.0.9", "wan0", forward("lan0", 1500)),
        ("10.1.0.9", "10.1.0.1", "lan0", Routed::Input(Reached::Local)),
        ("10.1.0.9", "192.0.2.1", "lan0", Routed::Input(Reached::Local)),
        ("10.1.0.9", "10.1.0.255", "lan0", Routed::Input(Reached::Broadcast)),
        ("8.8.8.8", "10.1.0.255", "wan0", Routed::Input(Reached::Broadcast)),
        ("0.0.0.0", "255.255.255.255", "lan0", Routed::Input(Reached::Broadcast)),
        ("0.0.0.0", "10.1.0.1", "lan0", Routed::Refused(Refused::Martian)),
        ("10.1.0.1", "8.8.8.8", "wan0", Routed::Refused(Refused::Martian)),
        ("127.0.0.1", "10.1.0.1", "wan0", Routed::Refused(Refused::Martian)),
        ("8.8.8.8", "127.0.0.1", "wan0", Routed::Refused(Refused::Martian)),
        ("224.0.0.1", "10.1.0.1", "wan0", Routed::Refused(Refused::Martian)),
        ("10.1.0.9", "10.66.0.1", "lan0", Routed::Refused(Refused::Blackhole)),
        ("10.1.0.9", "224.0.0.1", "lan0", Routed::Input(Reached::Multicast)),
        ("10.1.0.9", "224.0.0.251", "lan0", Routed::Unknown(Missing::Groups)),
        ("127.0.0.1", "127.0.0.1", "lo", Routed::Input(Reached::Local)),
        ("2001:db8:1::9", "2001:db8:9::1", "lan0", forward("wan0", 1492)),
        ("2001:db8:1::9", "2001:db8:1::", "lan0", Routed::Input(Reached::Anycast)),
        ("2001:db8:1::1", "2001:db8:9::1", "lan0", forward("wan0", 1492)),
        ("fe80::9", "2001:db8:9::1", "lan0", Routed::Refused(Refused::Scope)),
        ("fe80::9", "2001:db8:1::9", "lan0", forward("lan0", 1500)),
        ("fe80::9", "fe80::a", "lan0", Routed::Input(Reached::Local)),
        ("fe80::9", "fe80::a", "wan0", forward("wan0", 1492)),
        ("::", "2001:db8:1::9", "wan0", Routed::Refused(Refused::Martian)),
        ("fe80::9", "ff02::1:ff00:1", "lan0", Routed::Input(Reached::Multicast)),
        ("fe80::9", "ff02::1", "lan0", Routed::Input(Reached::Multicast)),
        ("fe80::9", "ff02::2", "lan0", Routed::Unknown(Missing::Groups)),
    ] {
        let (routed, assumed) = router.route_in_assuming(&packet(source, destination, input));
        assert_eq!(routed, goes, "{source} > {destination} by {input}");
        assert_eq!(assumed.forwarding, matches!(routed, Routed::Forward { .. }));
    }
    let flooded = Incoming { frame: FrameKind::Broadcast, ..packet("10.1.0.9", "8.8.8.8", "lan0") };
    assert_eq!(router.route_in(&flooded), Routed::Refused(Refused::UnicastInBroadcast));
    let flooded =
        Incoming { frame: FrameKind::Multicast, ..packet("10.1.0.9", "10.1.0.1", "lan0") };
    assert_eq!(router.route_in(&flooded), Routed::Input(Reached::Local));
    let steered = Incoming { source_route: true, ..packet("10.1.0.9", "8.8.8.8", "lan0") };
    assert_eq!(router.route_in(&steered), Routed::Refused(Refused::SourceRoute));
}

#[test]
fn a_source_of_the_other_side_is_assumed_to_pass() {
    let forged = packet("10.1.0.9", "10.1.0.20", "wan0");
    let router = router();
    let (routed, assumed) = router.route_in_assuming(&forged);
    assert!(matches!(routed, Routed::Forward { output: Some("lan0"), .. }));
    assert!(assumed.rp_filter);
    let strict = "net.ipv4.conf.all.rp_filter = 0\nnet.ipv4.conf.wan0.rp_filter = 1\nnet.ipv4.conf.wan0.forwarding = 1\n";
    let host = host(&[("routes.txt", ROUTES), ("sysctl.txt", strict)]);
    assert_eq!(host.route_in(&forged), Routed::Refused(Refused::RpFilter));
}

#[test]
fn what_is_not_known_decides_nothing() {
    let none = Host::default();
    let ping = packet("10.1.0.9", "8.8.8.8", "lan0");
    assert_eq!(none.route_in(&ping), Routed::Unknown(Missing::Routes));
    let v4 = host(&[("routes.txt", &ROUTES[..ROUTES.find("2001").unwrap()])]);
    assert_eq!(
        v4.route_in(&packet("2001:db8::1", "2001:db8::2", "lan0")),
        Routed::Unknown(Missing::Routes)
    );
    let main = host(&[(
        "routes.txt",
        "10.1.0.0/24 dev lan0 proto kernel scope link src 10.1.0.1\ndefault dev wan0",
    )]);
    assert_eq!(main.route_in(&ping), Routed::Unknown(Missing::Addresses));
    let addresses = "2: lan0    inet 10.1.0.1/24 brd 10.1.0.255 scope global lan0";
    let both = host(&[
        ("routes.txt", "10.1.0.0/24 dev lan0\ndefault dev wan0"),
        ("addresses.txt", addresses),
    ]);
    assert_eq!(both.route_in(&ping), Routed::Forward { output: Some("wan0"), mtu: None });
    let to = |destination| both.route_in(&packet("10.1.0.9", destination, "lan0"));
    assert_eq!(to("10.1.0.1"), Routed::Input(Reached::Local));
    assert_eq!(to("10.1.0.255"), Routed::Input(Reached::Broadcast));
    let other = host(&[("routes.txt", &format!("default dev tun0 table 100\n{ROUTES}"))]);
    assert_eq!(other.route_in(&ping), Routed::Unknown(Missing::Rules));
}

#[test]
fn policy_rules_that_ask_for_a_mark() {
    let rules = "0:\tfrom all lookup local\n9:\tfrom all fwmark 0x1/0x1 lookup 100\n32766:\tfrom all lookup main\n";
    let routes = format!("default dev tun0 table 100\n{ROUTES}");
    let host = host(&[("routes.txt", &routes), ("rule.txt", rules)]);
    let by = |mark| {
        let packet = Incoming { mark, ..packet("10.1.0.9", "8.8.8.8", "lan0") };
        match host.route_in(&packet) {
            Routed::Forward { output, .. } => Ok(output),
            other => Err(other),
        }
    };
    assert_eq!(by(Some(3)), Ok(Some("tun0")));
    assert_eq!(by(Some(2)), Ok(Some("wan0")));
    assert_eq!(by(None), Err(Routed::Unknown(Missing::Mark)));
    let rules = rules.replace("fwmark 0x1/0x1", "iif lan0");
    let host = self::host(&[("routes.txt", &routes), ("rule.txt", &rules)]);
    let by = |input| host.route_in(&Incoming { input, ..packet("10.1.0.9", "8.8.8.8", "lan0") });
    assert!(matches!(by(Some("lan0")), Routed::Forward { output: Some("tun0"), .. }));
    assert_eq!(by(None), Routed::Unknown(Missing::Input));
}

/// As for TPROXY: a table of its own that takes everything for the host.
/// A reply to what reached an address of the host would have that as its source, and policy rules ask for it.
#[test]
fn the_way_back_is_from_the_address_that_was_reached() {
    let routes = format!("default dev lan0 table 102\n{ROUTES}");
    let rules = "0:\tfrom all lookup local\n110:\tfrom 192.0.2.1 lookup 102\n32766:\tfrom all lookup main\n";
    let sysctl = "net.ipv4.conf.all.rp_filter = 1\n";
    let files = [("routes.txt", &*routes), ("rule.txt", rules), ("sysctl.txt", sysctl)];
    let host = host(&files);
    let strict = Routed::Refused(Refused::RpFilter);
    assert_eq!(host.route_in(&packet("8.8.8.8", "192.0.2.1", "wan0")), strict);
    let reached = Routed::Input(Reached::Local);
    assert_eq!(host.route_in(&packet("8.8.8.8", "10.1.0.1", "wan0")), reached);
    // Of a broadcast, nobody's.
    let many = Routed::Input(Reached::Broadcast);
    assert_eq!(host.route_in(&packet("8.8.8.8", "10.1.0.255", "wan0")), many);
}

/// What routing says of one address it says of all that are like it.
#[test]
fn addresses_that_are_alike_go_alike() {
    let routes = format!("10.0.0.0/8 dev lan0 table 102\nthrow 10.2.0.0/16 table 102\n{ROUTES}");
    let rules = "0:\tfrom all lookup local\n90:\tfrom 10.3.0.0/16 lookup 102\n91:\tfrom all to 10.5.0.0/24 lookup main suppress_prefixlength 8\n\
                 32766:\tfrom all lookup main\n";
    let sysctl = "net.ipv4.conf.all.rp_filter = 2\nnet.ipv4.conf.lan0.rp_filter = 1\nnet.ipv4.conf.lan0.forwarding = 1\n";
    let files = [
        ("routes.txt", &*routes),
        ("rule.txt", rules),
        ("links.txt", LINKS),
        ("sysctl.txt", sysctl),
    ];
    let host = host(&files);
    for is_v6 in [false, true] {
        let alike = host.alike(is_v6).expect("routes");
        let ends = alike.addresses.iter().flat_map(|class| {
            let first = class[0][0];
            class.iter().flatten().map(move |other| (first, *other))
        });
        let firsts: Vec<_> = alike.addresses.iter().map(|class| class[0][0]).collect();
        for (first, other) in ends {
            for third in &firsts {
                for input in ["lan0", "wan0"] {
                    let to = |to| host.route_in(&Incoming::new(*third, to, Some(input)));
                    assert_eq!(to(first), to(other), "{third} to {first} and {other} by {input}");
                    let from = |from| host.route_in(&Incoming::new(from, *third, Some(input)));
                    assert_eq!(
                        from(first),
                        from(other),
                        "{first} and {other} to {third} by {input}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_table_that_a_mark_chooses_may_lead_to_the_host() {
    let rules = "0:\tfrom all lookup local\n9:\tfrom all fwmark 0x1/0x1 lookup 100\n32766:\tfrom all lookup main\n";
    let open = Incoming { mark: None, ..packet("10.1.0.9", "8.8.8.8", "lan0") };
    let host = |route: &str| {
        let routes = format!("{route} table 100\n{ROUTES}");
        self::host(&[("routes.txt", &routes), ("rule.txt", rules)])
    };
    let inward = host("local default dev lo scope host");
    assert_eq!(inward.route_in(&open), Routed::Unknown(Missing::Mark));
    assert!(inward.may_turn_inward(&open));
    assert!(!host("local 10.9.0.0/16 dev lo scope host").may_turn_inward(&open));
    assert!(!host("default dev tun0").may_turn_inward(&open));
}

#[test]
fn packets_of_the_host_itself_leave() {
    let router = router();
    let out = |source: &str, destination: &str| {
        let packet = Outgoing {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            output: None,
            tos: None,
            mark: Some(0),
            protocol: Some(6),
            ports: None,
        };
        match router.route_out(&packet) {
            Routed::Forward { output, .. } => output.map(str::to_owned),
            _ => None,
        }
    };
    assert_eq!(out("0.0.0.0", "8.8.8.8").as_deref(), Some("wan0"));
    assert_eq!(out("192.0.2.1", "10.1.0.9").as_deref(), Some("lan0"));
    assert_eq!(out("192.0.2.1", "10.1.0.1").as_deref(), Some("lo"));
    assert_eq!(out("10.1.0.1", "255.255.255.255").as_deref(), Some("lan0"));
    assert_eq!(out("10.1.0.1", "224.0.0.251").as_deref(), Some("lan0"));
    assert_eq!(out("fe80::a", "ff02::1").as_deref(), Some("lan0"));
    assert_eq!(out("::", "ff02::1"), None);
    assert_eq!(out("192.0.2.1", "10.66.0.1"), None);
}

/// Two uplinks: what one client sends goes out by the second, and what arrives on one interface, too.
#[test]
fn policy_rules_say_where_a_frame_was_routed_as_far_as_it_shows_what_they_ask_for() {
    let routes = "default via 10.1.0.9 dev up1\ndefault via 10.2.0.9 dev up2 table 2\n\
                  local 10.1.0.1 dev up1 table local";
    let usual = "32766: from all lookup main\n32767: from all lookup default\n";
    let asks = |rule: &str, source: &str, to: &str| {
        let policy = format!("0: from all lookup local\n{rule}\n{usual}");
        let files = [("routes.txt", routes.to_owned()), ("rule.txt", policy)];
        let host = Host::read(|name| {
            files.iter().find(|(file, _)| *file == name).map(|(_, text)| text.clone())
        });
        let [source, to] = [source, to].map(|addr| addr.parse().unwrap());
        host.unwrap().leaves_by(source, to).map(str::to_owned)
    };
    let from = "200: from 10.0.0.77 lookup 2";
    assert_eq!(asks(from, "10.0.0.77", "192.0.2.5").as_deref(), Some("up2"));
    assert_eq!(asks(from, "10.0.0.78", "192.0.2.5").as_deref(), Some("up1"));
    assert_eq!(asks(from, "10.0.0.77", "10.1.0.1").as_deref(), Some("lo"));
    for rule in ["200: from all iif lan0 lookup 2", "200: from all fwmark 0x1 lookup 2"] {
        assert_eq!(asks(rule, "10.0.0.77", "192.0.2.5"), None, "{rule}");
    }
}

#[test]
fn a_file_that_is_none_is_named_with_its_place() {
    let files = [("routes.txt", "nonsense here\n")];
    let error = Host::read(|name| {
        files.iter().find(|(file, _)| *file == name).map(|(_, text)| text.to_string())
    });
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "routes.txt:1:1: expected an address, a prefix or default, found \"nonsense\""
    );
}

/// Words that programs print.
const WORDS: &str = "default local blackhole unreachable throw multicast 10.0.0.0/8 10.1.2.3 ::/0 fe80::1 2001:db8::/32 \
    dev eth0 via inet6 inet nexthop table metric mtu lock src proto kernel scope link from to all lookup not iif oif \
    fwmark 0x1/0xff tos 0x10 goto 5: 0: 1: eth0: eth0@if2: a@b: <UP,LOOPBACK> master br0 link/ether 02:00:00:00:00:01 \
    vlan id 7 4294967296 -1 = net.ipv4.conf.all.rp_filter dead linkdown sport 1-70000 suppress_prefixlength peer brd \
    lladdr weight";

/// Those, and others.
fn word() -> impl Strategy<Value = String> {
    let words: Vec<&str> =
        WORDS.split_whitespace().chain(["\\", "\n", "\n\t", "\u{a0}", "é"]).collect();
    prop_oneof![9 => proptest::sample::select(words).prop_map(str::to_owned), 1 => ".{0,6}"]
}

proptest! {
    #[test]
    fn no_text_is_too_much(
        files in proptest::collection::vec(proptest::collection::vec(word(), 0..60), 9),
        ends in proptest::collection::vec(any::<[u8; 4]>(), 4),
    ) {
        let names = ["routes.txt", "rule.txt", "links.txt", "addresses.txt", "neigh.txt", "maddr.txt", "bridge.txt", "sysctl.txt", "uname.txt"];
        // Each file alone, and then as many as can be read together.
        let mut good: Vec<(&str, String)> = Vec::new();
        for (name, words) in names.into_iter().zip(files) {
            let text = words.join(" ");
            if Host::read(|file| (file == name).then(|| text.clone())).is_ok() {
                good.push((name, text));
            }
        }
        let host = Host::read(|name| good.iter().find(|(file, _)| *file == name).map(|(_, text)| text.clone())).unwrap();
        for pair in ends.chunks(2) {
            for input in [None, Some("eth0"), Some("lo")] {
                let _ = host.route_in(&Incoming::new(pair[0].into(), pair[1].into(), input));
            }
        }
        let v6 = |bytes: [u8; 4]| std::net::IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(bytes[0])]);
        let _ = host.route_in(&Incoming::new(v6(ends[0]), v6(ends[1]), Some("eth0")));
        let _ = host.upper("eth0", Some(7));
    }
}
