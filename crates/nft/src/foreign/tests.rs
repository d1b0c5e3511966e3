//! Listings of nft 1.0.6, and what may be done to packets by what they hold.

use super::*;

/// The chains of a listing, text or JSON.
fn parsed(text: &str) -> Result<Vec<ForeignChain>, String> {
    let ruleset = match text.trim_start().starts_with('{') {
        true => crate::json::read::ruleset(text)?,
        false => {
            let no_files = &|_: &str| Err("no files".to_owned());
            crate::text::parse("test", text, no_files).map_err(|error| error.to_string())?
        }
    };
    Ok(chains(&ruleset))
}

/// As `nft list ruleset` printed it.
const TEXT: &str = include_str!("listing.nft");
/// As `nft -j list ruleset` printed the same.
const JSON: &str = include_str!("listing.json");

/// Each chain, and its effects.
fn told(text: &str) -> Vec<(String, Effects)> {
    let mut told: Vec<_> =
        parsed(text).unwrap().into_iter().map(|chain| (chain.to_string(), chain.effects)).collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    told
}

fn both(effects: &[Effects]) -> Effects {
    let mut all = Effects::default();
    effects.iter().for_each(|one| all.add(*one));
    all
}

#[test]
fn both_listings_tell_the_same() {
    let expected = [
        ("nft arp a/i (hook input, priority 0)", Effects::DROPS),
        ("nft bridge br/f (hook forward, priority -200)", Effects::DROPS),
        ("nft inet fw/clamp (hook forward, priority -150)", Effects::OPTIONS),
        ("nft inet fw/ing (hook ingress, priority -5)", Effects::DROPS),
        (
            "nft inet fw/input (hook input, priority 10)",
            both(&[Effects::DROPS, Effects::MARKS, Effects::TRACKS]),
        ),
        ("nft inet fw/odd (hook forward, priority 0)", Effects::ALL),
        (
            "nft inet fw/pn (hook postrouting, priority 100)",
            both(&[Effects::SOURCE, Effects::TRACKS]),
        ),
        ("nft netdev nd/e (hook ingress, priority 0)", Effects::DROPS),
    ];
    let expected = expected.map(|(name, effects)| (name.to_owned(), effects));
    let mut with_marks = expected.clone();
    with_marks[5].1.add(Effects::MARKS);
    with_marks[5].1.add(Effects::OPTIONS);
    with_marks[5].1.add(Effects::TRACKS);
    for (what, text) in [("text", TEXT), ("JSON", JSON)] {
        let told = told(text);
        assert_eq!(told, with_marks, "{what}");
    }
    let devices = |text| {
        let chains = parsed(text).unwrap();
        let of_netdev = chains.into_iter().find(|chain| chain.family == ForeignFamily::Netdev);
        of_netdev.unwrap().devices
    };
    assert_eq!(devices(TEXT), ["lo".into()]);
    assert_eq!(devices(JSON), [], "nft 1.0.6 leaves them out");
}

#[test]
fn what_a_chain_calls_it_does() {
    let table = |rules: &str| {
        format!(
            "table ip t {{\n\tmap m {{\n\t\ttype inet_service : verdict\n\t\telements = {{ 22 : goto b }}\n\t}}\n\
             \tchain a {{\n\t\tjump b\n\t}}\n\tchain b {{\n\t\ttcp dport 1 drop\n\t}}\n\tchain c {{\n\t\taccept\n\t}}\n\
             \tchain base {{\n\t\ttype filter hook forward priority filter; policy accept;\n\t\t{rules}\n\t}}\n}}\n"
        )
    };
    for (rules, effects) in [
        ("jump a", Some(Effects::DROPS)),
        ("jump c", None),
        ("counter packets 0 bytes 0", None),
        ("ct state established,related accept", Some(Effects::TRACKS)),
        ("tcp dport vmap @m", Some(Effects::DROPS)),
        (
            "ct state vmap { invalid : drop, new : accept }",
            Some(both(&[Effects::DROPS, Effects::TRACKS])),
        ),
        ("icmp type { redirect, echo-request } accept", None),
        ("icmp type redirect accept", None),
        ("log prefix \"drop \" counter packets 0 bytes 0", None),
        ("reject with tcp reset", Some(Effects::DROPS)),
        ("ip saddr @drop accept comment \"drop it\"", None),
        ("add @seen { ip saddr timeout 1m }", None),
        ("meta nftrace set 1", None),
        ("ct helper set \"ftp\"", Some(both(&[Effects::ALL, Effects::TRACKS]))),
        ("ip dscp set cs1", Some(Effects::ALL)),
        ("queue num 3", Some(Effects::ALL)),
        ("dnat to 10.0.0.1:80", Some(both(&[Effects::DESTINATION, Effects::TRACKS]))),
        ("redirect to :80", Some(both(&[Effects::DESTINATION, Effects::TRACKS]))),
        ("limit rate over 5/second burst 5 packets drop", Some(Effects::DROPS)),
    ] {
        let told = told(&table(rules));
        assert_eq!(told.first().map(|told| told.1), effects, "{rules}");
    }
    let dormant = table("drop").replace("table ip t {", "table ip t {\n\tflags dormant");
    assert_eq!(told(&dormant), []);
}

/// nft 1.1 prints scalars where 1.0 printed lists, and statements that are not known here.
#[test]
fn other_releases_are_read() {
    let json = |rule: &str| {
        format!(
            "{{\"nftables\": [{{\"metainfo\": {{}}}}, {{\"table\": {{\"family\": \"ip\", \"name\": \"t\", \"flags\": \"owner\"}}}}, \
             {{\"chain\": {{\"family\": \"ip\", \"table\": \"t\", \"name\": \"c\", \"type\": \"filter\", \"hook\": \"input\", \
             \"prio\": -5, \"dev\": [\"a\", \"b\"], \"policy\": \"accept\"}}}}, \
             {{\"rule\": {{\"family\": \"ip\", \"table\": \"t\", \"chain\": \"c\"{rule}}}}}]}}"
        )
    };
    for (rule, effects) in [
        ("", None),
        (", \"expr\": {\"accept\": null}", None),
        (", \"expr\": [{\"drop\": null}]", Some(Effects::DROPS)),
        (", \"expr\": [{\"teleport\": {\"to\": 1}}]", Some(Effects::ALL)),
        (", \"expr\": [{\"xt\": null}]", Some(Effects::ALL)),
    ] {
        assert_eq!(told(&json(rule)).first().map(|told| told.1), effects, "{rule}");
    }
    assert!(parsed("{\"nftables\": 1}").is_err());
    assert!(parsed("chain inet\n").unwrap_err().starts_with("test:1:"));
    assert_eq!(parsed("\n"), Ok(Vec::new()));
}

mod hostile {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever a file holds, it is read or refused.
        #[test]
        fn a_broken_listing_is_read_or_refused(
            cut in 0..TEXT.len(),
            words in prop::collection::vec((0..TEXT.len(), 0..12_usize), 0..6),
        ) {
            let signs = ["{", "}", ";", "\"", "\n", "chain", "jump", "vmap @m", ":", "#", "type", "priority"];
            for listing in [TEXT, JSON] {
                let mut text = listing.to_owned();
                for (at, word) in &words {
                    if text.is_char_boundary(*at) {
                        text.insert_str(*at, signs[*word]);
                    }
                }
                let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
                for text in [&text[..], &text[..cut]] {
                    let _ = parsed(text);
                }
            }
        }
    }
}

/// The effects of the one base chain of a listing.
fn of_one(text: &str) -> Effects {
    let told = told(text);
    told.first().map_or(Effects::default(), |(_, effects)| *effects)
}

#[test]
fn what_a_listing_does_not_show_may_be_anything() {
    let base = "type filter hook input priority 0; policy accept;";
    let chain = |rule: &str| format!("table ip t {{\n chain c {{\n {base}\n {rule}\n }}\n}}\n");
    // A chain without a name.
    assert_eq!(
        of_one(&chain("meta l4proto tcp jump {\n ip saddr 10.0.0.0/8 drop\n }")),
        Effects::DROPS
    );
    assert_eq!(of_one(&chain("jump nowhere")), Effects::ALL);
    assert_eq!(of_one(&chain("ip saddr vmap @nowhere")), Effects::ALL);
    assert_eq!(of_one(&chain("ip saddr 10.0.0.1 # xt_length")), Effects::ALL);
    assert_eq!(of_one(&chain("ip saddr 10.0.0.1 counter # handle 4")), Effects::default());
    let json = |chains: &str| {
        format!(
            "{{\"nftables\": [{{\"table\": {{\"family\": \"ip\", \"name\": \"t\"}}}}, {chains} {{\"chain\": {{\"family\": \"ip\", \"table\": \"t\", \"name\": \"c\", \
             \"type\": \"filter\", \"hook\": \"input\", \"prio\": 0}}}}, {{\"rule\": {{\"family\": \"ip\", \
             \"table\": \"t\", \"chain\": \"c\", \"expr\": [{{\"jump\": {{\"target\": \"a\"}}}}]}}}}]}}"
        )
    };
    assert_eq!(of_one(&json("")), Effects::ALL);
    let empty = "{\"chain\": {\"family\": \"ip\", \"table\": \"t\", \"name\": \"a\"}},";
    assert_eq!(of_one(&json(empty)), Effects::default());
}

#[test]
fn a_chain_whose_turn_cannot_be_read_is_refused() {
    let text =
        "table ip t {\n chain c {\n type filter hook input priority odd; policy drop;\n }\n}\n";
    assert!(parsed(text).unwrap_err().starts_with("test:3:"));
}

/// Chains that call each other by the thousand, from as many base chains: each effect goes along each call once.
#[test]
fn effects_go_along_calls_once() {
    let mut text = String::from("table ip t {\n");
    for at in 0..3000 {
        let next = (at + 1) % 3000;
        text +=
            &format!(" chain b{at} {{\n type filter hook input priority {at};\n jump c0\n }}\n");
        text += &format!(
            " chain c{at} {{\n jump c{next}\n {} }}\n",
            if at == 2999 { "drop\n" } else { "" }
        );
    }
    text += "}\n";
    let told = told(&text);
    assert_eq!(told.len(), 3000);
    assert!(told.iter().all(|(_, effects)| *effects == Effects::DROPS));
}
