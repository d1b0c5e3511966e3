//! Whole rulesets walked by crafted packets.

use super::probe::{Frame, craft, lowered, only};
use conntrack::{CtState, States};
use packet::craft::Message;
use packet::{Mark, tcp};
use rules::eval::Verdict::{self, Accept, Drop, Reject};
use rules::eval::{Alive, Memories, RuleRef, walk};
use rules::model::{Action, Family, Hook, Policy};
use rules::{Outcome, Transit};

/// The rules of a forward chain of family inet, whose policy is drop.
fn forward(rules: &str) -> String {
    format!(
        "table inet filter {{\nchain forward {{\ntype filter hook forward priority filter; policy drop;\n{rules}\n}}\n}}\n"
    )
}

fn verdict(frame: &Frame, rules: &str) -> Option<Verdict> {
    only(&frame.walk(&forward(rules)))
}

#[test]
fn a_port_is_one_of_its_protocol() {
    let syn = Frame::syn(22);
    let datagram = Frame::of(&craft("10.0.0.1", "10.0.0.2", Message::udp(1000, 22)));
    assert_eq!(verdict(&syn, "tcp dport 22 accept"), Some(Accept));
    assert_eq!(verdict(&datagram, "tcp dport 22 accept"), Some(Drop));
    assert_eq!(verdict(&datagram, "th dport 22 accept"), Some(Accept));
    assert_eq!(verdict(&syn, "tcp dport != 22 accept"), Some(Drop));
    assert_eq!(verdict(&datagram, "tcp dport != 22 accept"), Some(Drop), "no port of TCP");
}

#[test]
fn comparisons_hold_as_they_read() {
    let syn = Frame::syn(22);
    for (rule, says) in [
        ("ip saddr 10.0.0.1", Outcome::YES),
        ("ip saddr 10.0.0.0/8", Outcome::YES),
        ("ip saddr 10.0.0.0/31", Outcome::YES),
        ("ip saddr != 10.0.0.0/31", Outcome::NO),
        ("ip saddr 10.0.0.2-10.0.0.9", Outcome::NO),
        ("ip daddr { 10.0.0.2, 10.0.0.7-10.0.0.9 }", Outcome::YES),
        ("ip daddr != { 10.0.0.2, 10.0.0.7-10.0.0.9 }", Outcome::NO),
        ("tcp dport > 21", Outcome::YES),
        ("tcp dport > 22", Outcome::NO),
        ("tcp dport >= 22", Outcome::YES),
        ("tcp dport < 22", Outcome::NO),
        ("tcp dport <= 22", Outcome::YES),
        ("tcp dport 20-30", Outcome::YES),
        ("tcp flags syn", Outcome::YES),
        ("tcp flags ! syn", Outcome::NO),
        ("tcp flags == syn", Outcome::YES),
        ("tcp flags syn,ack", Outcome::YES),
        ("tcp flags == syn|ack", Outcome::NO),
        ("tcp flags & (syn|ack) == syn", Outcome::YES),
        ("tcp flags & (fin|syn) == fin", Outcome::NO),
        ("ip saddr . tcp dport { 10.0.0.1 . 22, 10.0.0.9 . 80 }", Outcome::YES),
        ("ip saddr . tcp dport { 10.0.0.0/24 . 20-30 }", Outcome::YES),
        ("ip saddr . tcp dport { 10.0.0.0/24 . 30-40 }", Outcome::NO),
        ("@th,16,16 22", Outcome::YES),
        ("@nh,72,8 6", Outcome::YES),
        ("ip ttl 64 ip version 4 ip hdrlength 5", Outcome::YES),
        ("ip dscp cs0 ip length 40", Outcome::YES),
        ("meta length 40 meta l4proto tcp meta protocol ip", Outcome::YES),
        ("iifname \"eth0\" oifname \"eth1\"", Outcome::YES),
        ("iifname \"eth*\"", Outcome::YES),
        ("iifname \"ens*\"", Outcome::NO),
        ("iifname { \"lo\", \"eth0\" }", Outcome::YES),
        ("iif \"lo\"", Outcome::NO),
        ("iif \"eth0\"", Outcome::YES),
        ("meta mark 0 meta mark & 0xff == 0", Outcome::YES),
        ("ct state new", Outcome::YES),
        ("ct state established,related", Outcome::NO),
        ("ct state { new, related }", Outcome::YES),
        ("ct state != invalid", Outcome::YES),
        ("ct mark 0", Outcome::MAYBE),
        ("icmp type echo-request", Outcome::NO),
        ("tcp doff 5 tcp window 65535", Outcome::YES),
        ("meta pkttype host", Outcome::YES),
    ] {
        assert_eq!(syn.says(rule), says, "{rule}");
    }
}

#[test]
fn family_inet_asks_for_the_family_that_a_header_has() {
    let six = Frame::of(&craft("2001:db8::1", "2001:db8::2", Message::tcp(1, 22, tcp::Flags::SYN)));
    let four = Frame::syn(22);
    let says = |frame: &Frame, rule: &str| frame.says_in("inet", "", rule);
    assert_eq!(says(&six, "ip saddr != 1.2.3.4"), Outcome::NO);
    assert_eq!(says(&six, "ip6 saddr 2001:db8::/32 tcp dport 22"), Outcome::YES);
    assert_eq!(says(&six, "ip6 saddr != fe80::/10"), Outcome::YES);
    assert_eq!(says(&four, "ip6 saddr != fe80::/10"), Outcome::NO);
    assert_eq!(says(&four, "meta nfproto ipv4 tcp dport 22"), Outcome::YES);
    assert_eq!(says(&six, "meta protocol ip6 ip version 6"), Outcome::NO);
    assert_eq!(says(&four, "meta protocol ip ip version 4"), Outcome::YES);
    let echo = Message::Icmp { kind: 128, code: 0, id: 1, sequence: 1 };
    let echo = Frame::of(&craft("2001:db8::1", "2001:db8::2", echo));
    assert_eq!(says(&echo, "icmpv6 type echo-request"), Outcome::YES);
    assert_eq!(says(&echo, "icmp type 128"), Outcome::NO);
}

#[test]
fn only_bytes_that_the_kernel_loads_are_needed() {
    // 14 bytes of Ethernet, 20 of IPv4, 20 of TCP.
    for (captured, rule, says) in [
        (34, "tcp dport 22", Outcome::MAYBE),
        (36, "tcp dport 22", Outcome::MAYBE),
        (38, "tcp dport 22", Outcome::YES),
        (36, "tcp sport 1000", Outcome::YES),
        (36, "tcp sport 1000 tcp dport 22", Outcome::MAYBE),
        (36, "tcp sport 1 tcp dport 22", Outcome::NO),
        (48, "tcp flags syn", Outcome::YES),
        (47, "tcp flags syn", Outcome::MAYBE),
        (34, "ip saddr 10.0.0.0/8", Outcome::YES),
    ] {
        assert_eq!(Frame::syn(22).cut(captured).says(rule), says, "{rule} of {captured}");
    }
    // A cut address still has its first bytes.
    let six = Frame::of(&craft("2001:db8::1", "2001:db8::2", Message::udp(1, 2)));
    assert_eq!(six.clone().cut(54).says("udp dport 2"), Outcome::MAYBE);
    // A header that ends on the wire is no match.
    let short = Message::Other { protocol: 6, header: vec![0, 1, 0] };
    let short = Frame::of(&craft("10.0.0.1", "10.0.0.2", short));
    assert_eq!(short.says("tcp sport 1"), Outcome::YES);
    assert_eq!(short.says("tcp dport 1"), Outcome::NO);
    assert_eq!(short.says("tcp dport != 1"), Outcome::NO);
}

#[test]
fn later_fragments_are_read_by_aligned_loads() {
    let mut craft = craft("10.0.0.1", "10.0.0.2", Message::udp(1, 2));
    craft.fragment = Some(packet::craft::Fragment { offset: 64, more: false });
    craft.payload = vec![0, 7, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8];
    let four = Frame::of(&craft);
    assert_eq!(four.says("udp sport 7 udp dport 9"), Outcome::YES);
    assert_eq!(four.says("@th,0,64 != 0"), Outcome::NO, "eight bytes are not read");
    assert_eq!(four.says("@th,8,16 != 0"), Outcome::NO, "nor two that are not aligned");
}

#[test]
fn verdicts_jump_return_and_fall_through() {
    let text = |rules: &str| {
        format!(
            "table ip t {{\nchain ssh {{ ip ttl 64 return; drop; }}\nchain web {{ accept; }}\nchain forward {{\ntype filter hook forward priority 0; policy accept;\n{rules}\n}}\n}}\n"
        )
    };
    let of = |rules: &str| only(&Frame::syn(22).walk(&text(rules)));
    assert_eq!(of("tcp dport 22 jump ssh; drop"), Some(Drop));
    assert_eq!(of("tcp dport 22 jump ssh; accept"), Some(Accept));
    assert_eq!(of("tcp dport 22 goto ssh; drop"), Some(Accept), "the policy follows a goto");
    assert_eq!(of("tcp dport vmap { 22 : jump web, 23 : drop }; drop"), Some(Accept));
    assert_eq!(of("tcp dport vmap { 23 : drop }; reject"), Some(Reject));
    assert_eq!(of("tcp dport vmap { 22 : goto ssh }; drop"), Some(Accept));
    assert_eq!(of("tcp dport vmap { 20-25 : continue, * : drop }; accept"), Some(Accept));
    assert_eq!(of("tcp dport vmap { 23 : accept, * : drop }"), Some(Drop));
    assert_eq!(of("ip protocol . th dport vmap { tcp . 22 : drop }"), Some(Drop));
    assert_eq!(of("continue; drop"), Some(Drop));
}

#[test]
fn a_map_of_states_follows_each_that_is_possible() {
    let mut frame = Frame::syn(22);
    let rules = "ct state vmap { established : accept, related : accept, invalid : drop }; accept";
    assert_eq!(verdict(&frame, rules), Some(Accept));
    frame.states = States::of(CtState::New).or(States::of(CtState::Established));
    assert_eq!(verdict(&frame, rules), Some(Accept));
    frame.states = States::of(CtState::Invalid).or(States::of(CtState::Established));
    assert_eq!(verdict(&frame, rules), None);
    frame.states = States::of(CtState::Invalid);
    assert_eq!(verdict(&frame, rules), Some(Drop));
}

#[test]
fn a_key_that_is_not_known_leaves_open_what_it_may_find() {
    let cut = Frame::syn(22).cut(36);
    assert_eq!(verdict(&cut, "tcp dport vmap { 22 : accept, 80 : drop }"), None);
    assert_eq!(verdict(&cut, "tcp dport vmap { 0-65535 : accept }"), Some(Accept));
}

#[test]
fn a_range_in_a_set_that_ends_before_it_begins_is_not_evaluated() {
    for elements in ["\"02:00\"-\"01:00\", \"03:00\"", "\"02:00\"-\"01:00\" . 1-2, \"03:00\" . 3"] {
        let left = if elements.contains(" . ") { "meta hour . tcp dport" } else { "meta hour" };
        assert_eq!(verdict(&Frame::syn(22), &format!("{left} {{ {elements} }} accept")), None);
    }
}

/// Rules that a walk hit, by chain and number, and whether that was certain.
#[derive(Default)]
struct Hits(Vec<(u32, u32, bool)>);

impl rules::eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        self.0.push((at.chain, at.rule + 1, certain));
    }
}

/// Where the key of a verdict map is not known, the rules of each chain that it may lead to count the packet, perhaps.
#[test]
fn chains_behind_a_key_that_is_not_known_are_walked() {
    let walked = |frame: &Frame, rule: &str| {
        let text = format!(
            "table inet t {{\nmap m {{ type inet_service : verdict; flags dynamic,timeout; elements = {{ 22 : jump a, 80 : \
             goto b }} }}\nchain f {{ type filter hook forward priority 0; policy drop;\n{rule}\ncounter accept\n}}\n\
             chain a {{\ncounter\nip saddr 10.9.9.9 counter\n}}\nchain b {{\ncounter accept\n}}\nchain c {{\ncounter\ndrop\n}}\n}}\n"
        );
        let ruleset = lowered(&text, frame.family()).ruleset;
        let (mut memories, mut hits) = (Memories::of(&ruleset), Hits::default());
        let verdicts = frame
            .see(|transit| walk(&ruleset, 0, transit, Alive::Certain, &mut memories, &mut hits));
        // The rule of the map itself is not of interest.
        hits.0.retain(|(chain, rule, _)| (*chain, *rule) != (0, 1));
        (hits.0, only(&verdicts))
    };
    let (cut, whole) = (Frame::syn(22).cut(36), Frame::syn(22));
    let (a, b, c, last) = ((1, 1, false), (2, 1, false), (3, 1, false), (0, 2, false));
    let dropped = (3, 2, false);
    for (frame, rule, hits, verdict) in [
        (
            &whole,
            "tcp dport vmap { 22 : jump a, 80 : jump b }",
            vec![(1, 1, true), (0, 2, true)],
            Some(Accept),
        ),
        // A chain that lets all packets out again leads to the next rule for certain.
        (&cut, "tcp dport vmap { 22 : jump a }", vec![a, (0, 2, true)], Some(Accept)),
        (&cut, "tcp dport vmap { 22 : jump a, 80 : jump b }", vec![a, b, last], Some(Accept)),
        (&cut, "tcp dport vmap { 22 : jump b, 80 : jump c }", vec![b, c, dropped, last], None),
        (&cut, "tcp dport vmap { 22 : goto a, 80 : jump b }", vec![a, b, last], None),
        (&cut, "tcp dport vmap { 22 : accept, 80 : goto c }", vec![c, dropped, last], None),
        // One part of the key is known.
        (
            &cut,
            "ip daddr . tcp dport vmap { 10.0.0.2 . 22 : jump a, 10.0.0.3 . 22 : jump c }",
            vec![a, (0, 2, true)],
            Some(Accept),
        ),
        // Maps that change, and keys that are not evaluated.
        (&whole, "tcp dport vmap @m", vec![a, b, last], None),
        // What stands after such a map follows a key that goes on.
        (&whole, "tcp dport vmap @m goto c", vec![a, b, c, dropped, last], None),
        (&whole, "symhash mod 2 vmap { 0 : jump a, 1 : jump b }", vec![a, b, last], Some(Accept)),
        (
            &cut,
            "meta mark set 1 tcp dport vmap { 22 : jump a, 80 : jump b }",
            vec![a, b, last],
            Some(Accept),
        ),
    ] {
        assert_eq!(walked(frame, rule), (hits, verdict), "{rule}");
    }
}

#[test]
fn marks_are_set_and_read() {
    let of = |rules: &str| verdict(&Frame::syn(22), rules);
    assert_eq!(of("meta mark set 7; meta mark 7 accept"), Some(Accept));
    assert_eq!(
        of("meta mark set meta mark | 0x10 meta mark set meta mark ^ 0x1; meta mark 0x11 accept"),
        Some(Accept)
    );
    assert_eq!(
        of("meta mark set tcp dport map { 22 : 5, 80 : 6 }; meta mark 5 accept"),
        Some(Accept)
    );
    assert_eq!(
        of("meta mark set tcp dport map { 80 : 6 } accept; meta mark 0 reject"),
        Some(Reject)
    );
    let mut frame = Frame::syn(22);
    frame.mark = Mark { value: 0, unknown: 1 };
    assert_eq!(verdict(&frame, "meta mark & 0x2 == 0 accept"), Some(Accept));
    assert_eq!(verdict(&frame, "meta mark 0 accept"), None);
}

#[test]
fn what_is_not_evaluated_is_unknown_by_name() {
    let text = forward("meta skuid 0 accept; osf name \"Linux\" drop; synproxy; accept");
    let names: Vec<String> =
        lowered(&text, Family::Ipv4).unknown.into_iter().flat_map(|of| of.causes).collect();
    assert_eq!(names, ["meta skuid", "osf name", "synproxy"]);
    assert_eq!(verdict(&Frame::syn(22), "meta skuid 0 accept"), None);
    assert_eq!(verdict(&Frame::syn(22), "tcp dport 23 meta skuid 0 accept; accept"), Some(Accept));
}

#[test]
fn sets_by_name_are_shared_and_timeouts_are_doubts() {
    let more = "set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/24, 192.168.0.1 } }
        set t { type ipv4_addr; flags timeout; elements = { 10.0.0.1 timeout 1h expires 5m, 10.0.0.2 } }
        set d { type ipv4_addr; size 10; flags dynamic; elements = { 10.0.0.1 } }
        set c { type ipv4_addr . inet_service; elements = { 10.0.0.1 . 22 } }
        set o { typeof ip saddr . tcp dport; flags interval; elements = { 10.0.0.0/8 . 1-100 } }";
    for (rule, says) in [
        ("ip saddr @s", Outcome::YES),
        ("ip saddr != @s", Outcome::NO),
        ("ip saddr @t", Outcome::MAYBE),
        ("ip daddr @t", Outcome::YES),
        ("ip saddr @d", Outcome::MAYBE),
        ("ip saddr . tcp dport @c", Outcome::YES),
        ("ip daddr . tcp dport @c", Outcome::NO),
        ("ip daddr . tcp dport @o", Outcome::YES),
    ] {
        assert_eq!(Frame::syn(22).says_in("ip", more, rule), says, "{rule}");
    }
}

#[test]
fn a_counter_before_a_comparison_is_a_part_of_its_own() {
    let text = forward("tcp dport 22 counter packets 3 bytes 4 ip ttl 64 counter accept");
    let chain = &lowered(&text, Family::Ipv4).ruleset.tables[0].chains[0];
    let listed: Vec<_> = chain.rules.iter().map(|rule| rule.listed.as_ref().unwrap()).collect();
    assert_eq!(listed.len(), 2);
    assert!(listed[0].counts && listed[0].is_part && listed[1].counts && !listed[1].is_part);
    assert_eq!((listed[0].number, listed[1].number), (1, 1));
    assert_eq!(chain.rules[0].counters.packets, 3);
    assert!(matches!(chain.rules[0].action, Action::None));
    assert!(matches!(chain.rules[1].action, Action::Accept));
    assert!(chain.rules[1].matches.len() > chain.rules[0].matches.len());
}

#[test]
fn base_chains_say_where_they_are() {
    let text = "table inet t {
        chain pre { type nat hook prerouting priority dstnat; dnat ip to 10.0.0.9; }
        chain out { type route hook output priority mangle; policy drop; }
        chain other { accept; }
    }\ntable ip6 other { flags dormant; chain in { type filter hook input priority 0; }; }";
    let four = lowered(text, Family::Ipv4).ruleset;
    assert_eq!(four.tables.len(), 1);
    let [pre, out, other] = &four.tables[0].chains[..] else { panic!("three chains") };
    let (pre, out) = (pre.base.unwrap(), out.base.unwrap());
    assert_eq!(
        (pre.hook, pre.priority, pre.role),
        (Hook::Prerouting, -100, rules::Role::Translate)
    );
    assert_eq!((out.hook, out.priority, out.policy), (Hook::Output, -150, Policy::Drop));
    assert!(other.base.is_none());
    assert!(four.tracks());
    let six = lowered(text, Family::Ipv6).ruleset;
    assert!(!six.tracks(), "nothing of IPv6 is translated");
    let tracks = |text: &str| lowered(text, Family::Ipv4).ruleset.tracks();
    let with = |what: &str| format!("table ip t {{\n{what}\nchain c {{\naccept\n}}\n}}\n");
    for what in [
        "ct helper o { type \"ftp\" protocol tcp; }",
        "ct timeout o { protocol tcp; policy = { established : 100 }; }",
        "ct expectation o { protocol tcp; dport 9; timeout 2m; size 12; l3proto ip; }",
        "synproxy o { mss 1460; wscale 7; }",
        "set s { type ipv4_addr; size 10; flags dynamic; ct count 3; }",
    ] {
        assert!(tracks(&with(what)), "{what}");
    }
    assert!(!tracks(&with("counter o { }\nlimit l { rate 1/second; }")));
    let six = lowered(text, Family::Ipv6).ruleset;
    assert_eq!(six.tables.len(), 2);
    assert!(six.tables[1].chains[0].base.is_none(), "a dormant table has no hooks");
    assert_eq!(&*six.tables[0].name, "inet t");
}

#[test]
fn what_tracking_knows_of_a_packet_names_its_headers() {
    // No other comparison is added, before the counter or after.
    let text = "table inet t { chain c {
        counter ct l3proto ipv6 frag nexthdr 50 accept
        ct l3proto ipv4 ct protocol tcp tcp dport 80 accept
    }\n}\n";
    let ruleset = lowered(text, Family::Ipv4).ruleset;
    let names: Vec<Vec<&str>> = ruleset.tables[0].chains[0]
        .rules
        .iter()
        .map(|rule| rule.matches.iter().map(|used| &*used.name).collect())
        .collect();
    assert_eq!(names[0], Vec::<&str>::new());
    assert_eq!(names[2], ["ct l3proto", "ct protocol", "tcp dport"]);
}

#[test]
fn a_verdict_map_by_what_tracking_knows_is_asked_once() {
    let parts = |vmap: &str, rule: &str| {
        let text = format!("table ip t {{\nchain a {{\n{rule}\n}}\nchain c {{\n{vmap}\n}}\n}}\n");
        lowered(&text, Family::Ipv4).ruleset.tables[0].chains[1].rules.len()
    };
    // A packet that comes back from `a` is asked for the next, which does not fit if nothing has changed.
    assert_eq!(parts("ct mark vmap { 1 : jump a, 1 : jump a, 2 : drop }", ""), 2);
    assert_eq!(parts("ct mark vmap { 1 : jump a, 2 : drop }", "ct mark set 2"), 1);
    assert_eq!(parts("ct mark vmap { 1 : goto a, 2 : drop }", "ct mark set 2"), 2);
    assert_eq!(parts("ct state vmap { invalid : jump a, untracked : drop }", "notrack"), 1);
    assert_eq!(parts("numgen random mod 2 vmap { 0 : jump a, 1 : drop }", ""), 1);
    assert_eq!(parts("numgen random mod 2 vmap { 0 : goto a, 1 : drop }", ""), 2);
}

#[test]
fn at_postrouting_the_type_of_the_input_is_that_of_the_output() {
    let links = "1: t1: <POINTOPOINT,NOARP,UP> mtu 1500\\    link/none \n2: e1: <UP> mtu 1500\\    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n";
    let says = |output, hook, rule: &str| {
        let mut frame = crate::lower::probe::Frame::syn(22);
        (frame.hook, frame.output) = (hook, output);
        let read = |file: &str| (file == "links.txt").then(|| links.to_owned());
        frame.host = host::Host::read(read).unwrap();
        frame.says(rule)
    };
    assert_eq!(says("t1", Hook::Forward, "iiftype 1"), Outcome::YES);
    assert_eq!(says("t1", Hook::Postrouting, "iiftype 1"), Outcome::NO);
    assert_eq!(says("t1", Hook::Postrouting, "iiftype 65534"), Outcome::YES);
    assert_eq!(says("t1", Hook::Postrouting, "ether type ip"), Outcome::NO);
    assert_eq!(says("e1", Hook::Postrouting, "ether type ip"), Outcome::YES);
    assert_eq!(says("t2", Hook::Postrouting, "iiftype 1"), Outcome::MAYBE);
}

#[test]
fn rejects_answer_as_the_family_does() {
    let answer = |rule: &str| {
        let lowered = lowered(&forward(rule), Family::Ipv4);
        let rule = lowered.ruleset.tables[0].chains[0].rules[0].clone();
        match &rule.action {
            Action::Target(target) => target.body.answer(),
            _ => None,
        }
    };
    let icmp = |code| Some(rules::ext::Answer::Icmp { kind: 3, code });
    assert_eq!(answer("reject"), icmp(3));
    assert_eq!(answer("reject with icmp host-prohibited"), icmp(10));
    assert_eq!(answer("reject with icmpx admin-prohibited"), icmp(13));
    assert_eq!(answer("reject with tcp reset"), Some(rules::ext::Answer::Reset));
    let datagram = Frame::of(&craft("10.0.0.1", "10.0.0.2", Message::udp(1, 2)));
    assert_eq!(verdict(&datagram, "reject with tcp reset"), Some(Drop), "the policy");
}

#[test]
fn a_verdict_map_of_many_elements_is_a_hash() {
    let mut text = String::from(
        "table ip t {\nmap m { type ipv4_addr . inet_proto . inet_service : verdict; elements = { ",
    );
    let chain = |at: u32| {
        format!("{}.{}.{}.{} . tcp . {}", 10, at >> 16 & 255, at >> 8 & 255, at & 255, 22)
    };
    for at in 0..2000 {
        text.push_str(&format!("{} : goto s{}, ", chain(at), at));
    }
    text.push_str("} }\n");
    for at in 0..2000 {
        text.push_str(&format!("chain s{at} {{ {}; }}\n", if at == 2 { "accept" } else { "drop" }));
    }
    text.push_str("chain f { type filter hook forward priority 0; ip daddr . meta l4proto . th dport vmap @m; drop; }\n}\n");
    assert_eq!(only(&Frame::syn(22).walk(&text)), Some(Accept));
    assert_eq!(only(&Frame::syn(23).walk(&text)), Some(Drop));
}

#[test]
fn devices_are_whole_names_in_concatenations() {
    let mut frame = Frame::syn(22);
    let rules = "oif . tcp dport vmap { \"eth1\" . 22 : accept, \"eth9\" . 22 : continue }";
    assert_eq!(verdict(&frame, rules), Some(Accept));
    (frame.hook, frame.output) = (Hook::Forward, "");
    assert_eq!(verdict(&frame, rules), Some(Drop), "no output device, and no element");
    assert_eq!(verdict(&frame, "fib daddr oif \"eth1\" accept"), None, "nobody gave routes");
}

#[test]
fn what_nft_makes_of_bits_differs_by_release() {
    let six = Frame::of(&craft("2001:db8::1", "2001:db8::2", Message::udp(1, 2)));
    assert_eq!(six.says("ip6 dscp | 0x3f == 0x3f"), Outcome::MAYBE);
    assert_eq!(six.says("ip6 dscp & 0x3f == 0"), Outcome::YES);
    assert_eq!(six.says("ip6 hoplimit ^ 0x40 == 0"), Outcome::YES);
    let igmp = Frame::of(&craft(
        "2001:db8::1",
        "2001:db8::2",
        Message::Other { protocol: 2, header: vec![0; 8] },
    ));
    assert_eq!(igmp.says_in("inet", "", "igmp mrt 0"), Outcome::NO, "a protocol of IPv4");
}

#[test]
fn chains_at_ingress_see_what_their_devices_receive() {
    let text = "table netdev t {
        chain in {
            type filter hook ingress devices = { eth0, wan* } priority -500; policy drop;
            ip saddr 10.0.0.1 tcp dport 22 accept
        }
    }";
    let mut frame = Frame::syn(22);
    frame.hook = Hook::Prerouting;
    assert_eq!(only(&frame.walk(text)), Some(Accept));
    let mut other = Frame::syn(23);
    other.hook = Hook::Prerouting;
    assert_eq!(only(&other.walk(text)), Some(Drop));
    other.input = "wan3";
    assert_eq!(only(&other.walk(text)), Some(Drop));
    other.input = "eth1";
    assert_eq!(only(&other.walk(text)), Some(Accept), "the chain is for other devices");
    let base = lowered(text, Family::Ipv6).ruleset.tables[0].chains[0].base.unwrap();
    assert!(base.priority < -1_000_000);
}

#[test]
fn the_input_device_is_known_after_routing() {
    let text = "table ip t { chain post { type nat hook postrouting priority srcnat; policy accept;
        iifname \"eth0\" oifname \"eth1\" drop; }; }";
    let mut frame = Frame::syn(22);
    frame.hook = Hook::Postrouting;
    assert_eq!(only(&frame.walk(text)), Some(Drop));
    frame.input = "";
    assert_eq!(only(&frame.walk(text)), Some(Accept), "the host's own packet");
}

#[test]
fn a_number_that_is_drawn_leads_to_each_element() {
    let rules = |rules: &str| {
        format!(
            "table ip t {{ chain a {{ accept; }}\nchain b {{ ip ttl 64 accept; }}\nchain f {{ type filter hook forward priority 0; policy drop;\n{rules}\n}}; }}"
        )
    };
    let of = |text: &str| only(&Frame::syn(22).walk(&rules(text)));
    assert_eq!(of("numgen random mod 2 vmap { 0 : jump a, 1 : jump b }"), Some(Accept));
    assert_eq!(of("numgen inc mod 3 vmap { 0-1 : jump a, 2 : goto b }"), Some(Accept));
    assert_eq!(of("numgen random mod 2 vmap { 0 : accept, 1 : drop }"), None);
    assert_eq!(of("numgen random mod 3 vmap { 0 : accept, 1 : accept }"), None, "2 has no element");
    assert_eq!(of("jhash ip saddr mod 1 seed 0x5 vmap { 0 : accept }"), Some(Accept));
}

#[test]
fn labels_are_numbers_of_bits() {
    let untracked = Frame { states: States::of(CtState::Invalid), ..Frame::syn(22) };
    assert_eq!(untracked.says("ct label 1"), Outcome::NO, "no connection, no label");
    let unknown = |rule: &str| !lowered(&forward(rule), Family::Ipv4).unknown.is_empty();
    assert!(!unknown("ct label 1 accept"));
    assert!(unknown("ct label & 0x3e == 0x0 accept"));
    assert!(unknown("ct label ^ 0x1f != 0x1f accept"), "not label 0");
    assert!(unknown("ct label . tcp dport { 1 . 22 } accept"));
    assert!(unknown("ct label vmap { 1 : accept }"));
}

/// Where the last byte ends that a rule loads of a packet of IPv4 with a bare header, in its Ethernet frame.
fn needed(rule: &str) -> usize {
    let table = crate::model::Table::new(crate::model::Family::Ip, "t");
    let mut around = crate::model::Ruleset::default();
    around.tables.push(table.clone());
    let read = crate::text::parse_rule(crate::model::Family::Ip, rule, around).expect("a rule");
    let loads = crate::lower::loads(&read, &table, Family::Ipv4).expect("evaluated");
    let end = |load: &String| {
        let rest = load.strip_prefix("payload load ")?;
        let (len, rest) = rest.split_once("b @ ")?;
        let (base, offset) = rest.split_once(" header + ")?;
        let start = if base == "network" { 14 } else { 34 };
        Some(start + len.parse::<usize>().ok()? + offset.parse::<usize>().ok()?)
    };
    loads.iter().filter_map(end).max().unwrap_or(0)
}

#[test]
fn a_cut_packet_leaves_open_only_what_it_lacks() {
    let rules = [
        "tcp dport 22",
        "tcp dport != 22",
        "tcp sport 1000 tcp dport 22",
        "tcp sport . tcp dport { 1000 . 22, 5 . 6 }",
        "tcp dport { 20-30, 80 }",
        "tcp dport != { 20-30, 80 }",
        "tcp flags & (syn|ack) == syn",
        "tcp flags syn",
        "tcp sequence 1",
        "tcp window > 1000",
        "tcp doff 5",
        "@th,32,32 1",
        "@th,104,8 & 2 != 0",
        "@nh,96,64 != 0",
        "ip saddr 10.0.0.0/8 tcp dport 22",
        "meta l4proto tcp th dport 22",
        "tcp dport < 1024 tcp window 65535",
        "tcp checksum != 0",
    ];
    for rule in rules {
        let whole = Frame::syn(22);
        let (says, needed) = (whole.says(rule), needed(rule));
        for captured in 34..=whole.bytes.len() {
            let cut = whole.clone().cut(captured).says(rule);
            assert_eq!(cut.or(says), cut, "{rule} of {captured} bytes");
            if captured >= needed {
                assert_eq!(cut, says, "{rule} of {captured} bytes needs {needed}");
            }
        }
        assert!(needed <= 34 || !whole.clone().cut(34).says(rule).is_known(), "{rule}");
    }
}

/// After a statement of unknown effect an authentication header may be there, where nf_tables stops.
#[test]
fn where_the_upper_layer_begins_is_not_known_of_bytes_that_are_not() {
    let header = Message::Other { protocol: 51, header: vec![41, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0] };
    let frame = Frame::of(&craft("2001:db8::1", "2001:db8::2", header));
    assert_eq!(verdict(&frame, "ah sequence 0x09000000 accept"), Some(Accept));
    let written = "ip6 saddr set 2001:db8::3; ah sequence 0x09000000 accept";
    assert_eq!(verdict(&frame, written), None);
    assert_eq!(verdict(&frame, "ip6 saddr set 2001:db8::3; meta l4proto 41 accept"), None);
}
