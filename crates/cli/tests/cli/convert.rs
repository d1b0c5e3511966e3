//! `tamis convert`: rules of one family converted to another, and to JSON and back.

use crate::ran::{RULES, Scratch, fed, tamis};

const FILTER: &str = "*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:web - [0:0]
-A FORWARD -s 10.0.0.0/8 -i eth0 -p tcp -m tcp --dport 80 -j web
-A FORWARD -p icmp -m icmp --icmp-type 8 -m mark --mark 0x1 -j ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A web ! -d 192.0.2.1/32 -j MARK --set-xmark 0x5/0xffffffff
-A web -j DROP
COMMIT
";

const FRAMES: &str = "*filter
:INPUT ACCEPT
:FORWARD ACCEPT
:OUTPUT ACCEPT
:web RETURN
-A FORWARD -p IPv4 -i eth0 --ip-src 10.0.0.0/8 --ip-proto tcp --ip-dport 80 -j web
-A FORWARD -p IPv4 --ip-proto icmp --ip-icmp-type echo-request --mark 0x1 -j ACCEPT
-A FORWARD -p IPv4 -j DROP
-A web -p IPv4 ! --ip-dst 192.0.2.1 -j mark --mark-set 0x5 --mark-target CONTINUE
-A web -p IPv4 -j DROP
";

fn converted(text: &str, to: &str, more: &[&str]) -> (String, String) {
    let ran = fed(&[&["convert", "-", "--to", to], more].concat(), text.as_bytes());
    let may_differ = ran.err.lines().any(|line| line.starts_with("tamis: packets may get another"));
    assert_eq!(ran.code, Some(if may_differ { 5 } else { 0 }), "{}", ran.err);
    let losses = ran.err.lines().filter(|line| !line.starts_with("tamis: "));
    (ran.out, losses.map(|line| format!("{line}\n")).collect())
}

#[test]
fn what_a_bridge_can_say_is_converted_and_the_rest_is_named() {
    let (text, losses) = converted(FILTER, "ebtables", &[]);
    assert_eq!(text, FRAMES);
    let losses: Vec<&str> = losses.lines().collect();
    let [loss] = losses.as_slice() else { panic!("{losses:?}") };
    assert!(loss.contains(":8: lost conntrack --ctstate: -A FORWARD"), "{loss}");
}

#[test]
fn rules_go_to_a_bridge_and_back_and_stay_then() {
    let (back, _) = converted(FRAMES, "iptables", &["--from", "ebtables"]);
    for line in FILTER.lines().filter(|line| line.starts_with("-A") && !line.contains("conntrack"))
    {
        assert!(back.contains(line), "{line}\n{back}");
    }
    let (again, losses) = converted(&back, "ebtables", &[]);
    let (stable, _) = converted(&again, "iptables", &["--from", "ebtables"]);
    assert_eq!((stable, losses), (back, String::new()));
}

#[test]
fn strict_writes_nothing_where_something_is_lost() {
    let scratch = Scratch::new("convert-strict");
    let file = scratch.write("rules", FILTER.as_bytes());
    let ran = tamis(&["convert", &file, "--to", "ip6tables", "--strict"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(5), ""));
    assert!(ran.err.contains("lost an address of the other family"), "{}", ran.err);
    let ran = tamis(&["convert", &file, "--to", "iptables", "--strict"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), FILTER));
}

#[test]
fn arp_rules_are_bridge_rules_about_arp() {
    let rules = "*filter\n:INPUT DROP\n:OUTPUT ACCEPT\n\
                 -A INPUT -j ACCEPT -s 10.0.0.0/8 --src-mac 02:00:00:00:00:01 --opcode 1\n";
    let (text, losses) = converted(rules, "ebtables", &["--from", "arptables"]);
    assert_eq!(losses, "");
    assert_eq!(
        text,
        "*filter\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n\
         -A INPUT -p ARP --arp-op Request --arp-htype 1 --arp-ip-src 10.0.0.0/8 \
         --arp-mac-src 02:00:00:00:00:01 -j ACCEPT\n-A INPUT -p ARP -j DROP\n"
    );
}

#[test]
fn json_comes_back_as_the_rules_that_it_was_made_of() {
    for text in [std::fs::read_to_string(RULES).unwrap(), FILTER.to_owned(), FRAMES.to_owned()] {
        let (canonical, _) = match text.contains("-p IPv4") {
            true => converted(&text, "ebtables", &[]),
            false => converted(&text, "iptables", &[]),
        };
        let (json, _) = converted(&text, "json", &[]);
        assert!(json.contains("\"schema\": \"tamis.rules/1\""));
        let to = if text.contains("-p IPv4") { "ebtables" } else { "iptables" };
        let (back, _) = converted(&json, to, &["--from", "json"]);
        assert_eq!(back, canonical);
        assert_eq!(converted(&back, "json", &[]).0.lines().count(), json.lines().count());
    }
}

const LISTING: &str = "table inet filter {
	set blocked {
		type ipv4_addr
		flags interval
		elements = { 1.2.3.0/24, 9.9.9.9 }
	}

	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		ip saddr @blocked counter packets 3 bytes 180 drop
		tcp dport { 22, 80 } limit rate 10/second burst 5 packets accept comment \"web\"
	}
}
";

#[test]
fn listings_of_nftables_go_to_json_and_back() {
    let ran = fed(&["convert", "-", "--to", "nft-json"], LISTING.as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(
        ran.out.contains(r#"{"match": {"op": "in", "left": {"ct": {"key": "state"}}"#),
        "{}",
        ran.out
    );
    let back = fed(&["convert", "-", "--from", "nft-json", "--to", "nft"], ran.out.as_bytes());
    assert_eq!((back.code, back.out.as_str(), back.err.as_str()), (Some(0), LISTING, ""));
    let told = fed(&["convert", "-", "--to", "nft"], ran.out.as_bytes());
    assert_eq!(told.out, LISTING);
}

#[test]
fn what_is_wrong_with_rules_of_nftables_is_said_with_its_place() {
    let scratch = Scratch::new("convert-nft");
    let file = scratch
        .write("rules.nft", b"table ip t {\n\tchain c {\n\t\tinclude \"part.nft\"\n\t}\n}\n");
    scratch.write("part.nft", b"tcp dprt 22\n");
    let ran = tamis(&["convert", &file, "--to", "nft-json"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("part.nft:1:5: tcp has no field dprt"), "{}", ran.err);
    scratch.write("part.nft", b"tcp dport 22 accept\n");
    let ran = tamis(&["convert", &file, "--to", "nft"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "table ip t {\n\tchain c {\n\t\ttcp dport 22 accept\n\t}\n}\n")
    );
    let out = scratch.write("out.nft", b"include \"../out-of-it.nft\"\n");
    assert_eq!(tamis(&["convert", &out, "--to", "nft"]).code, Some(2));
    let other = fed(&["convert", "-", "--to", "iptables"], LISTING.as_bytes());
    assert_eq!(other.code, Some(2), "{}", other.err);
    let terse = LISTING
        .replace("flags interval", "flags constant")
        .replace("elements = { 1.2.3.0/24, 9.9.9.9 }", "");
    let ran = fed(&["convert", "-", "--to", "nft-json"], terse.as_bytes());
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("expected a listing without -t"), "{}", ran.err);
}

#[test]
fn statements_that_are_not_known_are_lost_by_name_and_handle() {
    let json = r#"{"nftables": [{"table": {"family": "ip", "name": "t", "handle": 1}},
        {"chain": {"family": "ip", "table": "t", "name": "c", "handle": 2}},
        {"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 9, "expr": [{"novel": null}]}}]}"#;
    let ran = fed(&["convert", "-", "--to", "nft"], json.as_bytes());
    assert_eq!(ran.code, Some(5));
    assert!(
        ran.err.contains(
            r#"lost a rule for a statement that is not known: ip t c handle 9: {"novel": null}"#
        ),
        "{}",
        ran.err
    );
    let strict = fed(&["convert", "-", "--to", "nft", "--strict"], json.as_bytes());
    assert_eq!((strict.code, strict.out.as_str()), (Some(5), ""));
}
