//! Near misses of single packets, through `why`.

use dataplane::Config;
use rules::save::LoadOptions;
use serde_json::Value;

use crate::rules_file::RulesFile;
use crate::{spec, why};

/// The near misses of a packet under rules of `filter/FORWARD`, as `line test | packet_has`.
fn near(rules: &str, packet: &str, count: usize) -> Vec<String> {
    let text = format!("*filter\n:FORWARD DROP [0:0]\n:other - [0:0]\n{rules}\nCOMMIT\n");
    let files = [RulesFile::from_text("r", text, &LoadOptions::default()).unwrap()];
    let config = Config::default();
    let spec = spec::parse(packet).unwrap();
    let story =
        why::of_conversation(&files, &config.clone().into(), &[], &spec, Some(count)).json();
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let misses = story["near"].as_array().unwrap().iter();
    misses
        .map(|m| format!("{} {} | {}", m["line"], word(&m["test"]), word(&m["packet_has"])))
        .collect()
}

const SYN: &str =
    "in=wan0 out=lan0 tcp 198.51.100.7:51200 > 10.0.0.9:5433 syn mac=02:00:00:00:00:01";

#[test]
fn a_port_that_is_one_off_is_named_with_the_packets_own() {
    let rules = "-A FORWARD -i wan0 -p tcp -m tcp --dport 5432 -j ACCEPT";
    assert_eq!(near(rules, SYN, 3), ["4 --dport 5432 | --dport 5433"]);
}

#[test]
fn a_length_is_told_where_it_is_known() {
    let rule = "-A FORWARD -p tcp -m length --length 100:200 -j ACCEPT";
    let given = format!("{SYN} options=none payload=none");
    assert_eq!(near(rule, &given, 3), ["4 --length 100:200 | --length 40"]);
    assert_eq!(near(rule, SYN, 3), [] as [&str; 0]);
}

#[test]
fn every_kind_of_test_has_its_words() {
    for (rule, miss) in [
        ("-s 192.0.2.0/24 -p tcp", "-s 192.0.2.0/24 | -s 198.51.100.7"),
        ("! -d 10.0.0.0/8 -p tcp", "! -d 10.0.0.0/8 | -d 10.0.0.9"),
        ("-i lan0 -p tcp", "-i lan0 | -i wan0"),
        ("-i wan0 -o dmz0", "-o dmz0 | -o lan0"),
        ("-i wan0 -p udp", "-p udp | -p tcp"),
        ("-p tcp -m tcp --sport 80", "--sport 80 | --sport 51200"),
        ("-p tcp -m tcp --sport 51200 --dport 22", "--dport 22 | --dport 5433"),
        ("-p tcp -m tcp ! --sport 51200 --dport 5433", "! --sport 51200 | --sport 51200"),
        ("-p tcp -m tcp ! --tcp-flags SYN SYN", "! --tcp-flags SYN SYN | flags syn"),
        ("-p tcp -m multiport --dports 80,443", "--dports 80,443 | --dport 5433"),
        ("-p tcp -m multiport --ports 80,443", "--ports 80,443 | --sport 51200 --dport 5433"),
        ("-p tcp -m mark --mark 0x1", "--mark 0x1 | --mark 0x0"),
        ("-p tcp -m ttl --ttl-lt 5", "--ttl-lt 5 | --ttl-eq 63"),
        (
            "-p tcp -m iprange --src-range 10.0.0.1-10.0.0.5 --dst-range 10.0.0.1-10.0.0.9",
            "--src-range 10.0.0.1-10.0.0.5 | -s 198.51.100.7",
        ),
        (
            "-p tcp -m mac --mac-source 00:11:22:33:44:55",
            "--mac-source 00:11:22:33:44:55 | --mac-source 02:00:00:00:00:01",
        ),
    ] {
        assert_eq!(near(&format!("-A FORWARD {rule} -j ACCEPT"), SYN, 3), [format!("4 {miss}")]);
    }
    let ping = "icmp 10.0.0.1 > 10.0.0.2 destination-unreachable/3";
    let rules = "-A FORWARD -p icmp -m icmp --icmp-type 8 -j ACCEPT";
    assert_eq!(near(rules, ping, 1), ["4 --icmp-type 8 | --icmp-type destination-unreachable/3"]);
}

#[test]
fn two_tests_that_fail_are_no_near_miss() {
    let rules = "-A FORWARD -i lan0 -p tcp -m tcp --dport 22 -j ACCEPT\n\
                 -A FORWARD -p tcp -m tcp --sport 80 --dport 22 -j ACCEPT";
    assert!(near(rules, SYN, 9).is_empty());
}

#[test]
fn a_test_that_may_hold_is_no_near_miss() {
    let rules = "-A FORWARD -i lan0 -p udp -j ACCEPT";
    assert!(near(rules, "tcp 1.2.3.4:5 > 6.7.8.9:10 syn", 9).is_empty());
}

#[test]
fn rules_that_change_nothing_or_were_never_reached_are_left_out() {
    let rules = "-A FORWARD -p tcp -m tcp --dport 1\n\
                 -A FORWARD -p tcp -m tcp --dport 2 -j LOG\n\
                 -A FORWARD -p tcp -m tcp --dport 3 -j other\n\
                 -A FORWARD -p tcp -m tcp --dport 5433 -j ACCEPT\n\
                 -A FORWARD -p tcp -m tcp --dport 4 -j DROP";
    assert_eq!(near(rules, SYN, 9), ["6 --dport 3 | --dport 5433"]);
}

#[test]
fn the_nearest_to_the_decision_come_first_and_rules_of_one_test_last() {
    let rules = "-A FORWARD -p tcp -m tcp --dport 1 -j ACCEPT\n\
                 -A FORWARD -p tcp -m tcp --dport 2 -j ACCEPT\n\
                 -A FORWARD -i lo -j ACCEPT";
    let lines = |count| -> Vec<char> {
        near(rules, SYN, count).iter().filter_map(|miss| miss.chars().next()).collect()
    };
    assert_eq!(lines(9), ['5', '4', '6']);
    assert_eq!(lines(1), ['5']);
}

#[test]
fn options_split_at_their_names() {
    let split = |text: &str| super::misses::split_options(text).join("|");
    assert_eq!(split("--a 1 ! --b 2 --c"), "--a 1|! --b 2|--c");
    assert_eq!(split("! --b 2"), "! --b 2");
    assert_eq!(split("--tcp-flags FIN,SYN SYN --dport 1:2"), "--tcp-flags FIN,SYN SYN|--dport 1:2");
}

#[test]
fn rules_by_the_thousand_keep_the_nearest() {
    let rules: Vec<String> = (1..20_000)
        .map(|port| format!("-A FORWARD -p udp -m udp --dport {port} -j ACCEPT"))
        .collect();
    let packet = "udp 10.0.0.9:4000 > 192.0.2.53:20000";
    let nearest = near(&rules.join("\n"), packet, 2);
    assert_eq!(
        nearest,
        ["20002 --dport 19999 | --dport 20000", "20001 --dport 19998 | --dport 20000"]
    );
}
