//! Matches and targets that tamis does not know: kept as text, with the options that may be theirs.

use rules::convert::convert;
use rules::model::{Action, Family, Rule};
use rules::save::{LoadError, LoadOptions, Loaded, load, print_ruleset};

fn loaded(rules: &str, family: Family) -> Result<Loaded, LoadError> {
    let text = format!("*mangle\n:chain - [0:0]\n{rules}\nCOMMIT\n");
    load(&text, &LoadOptions { family: Some(family), ..LoadOptions::default() })
}

/// The rules as they print.
fn printed(rules: &str) -> String {
    let loaded = loaded(rules, Family::Ipv4).unwrap_or_else(|error| panic!("{rules}: {error}"));
    let text = print_ruleset(&loaded.ruleset, false, |_, _, _| Default::default());
    text.lines().filter(|line| line.starts_with("-A")).collect::<Vec<_>>().join("\n")
}

/// The only rule, and the text of a warning.
fn rule(text: &str) -> (Rule, Vec<String>) {
    let loaded = loaded(text, Family::Ipv4).unwrap_or_else(|error| panic!("{text}: {error}"));
    let rule = loaded.ruleset.tables[0].chains.iter().find_map(|chain| chain.rules.first());
    let warnings = loaded.warnings.into_iter().map(|warning| warning.what).collect();
    (Rule::clone(rule.expect(text)), warnings)
}

fn refused(text: &str) -> String {
    loaded(text, Family::Ipv4).expect_err(text).to_string()
}

#[test]
fn options_of_an_unknown_extension_are_nobody_elses() {
    for text in [
        "-A FORWARD -m ndpi --proto 7 -j DROP",
        "-A FORWARD -m ndpi --fragment -j DROP",
        "-A FORWARD -m tcp -m ndpi --dport 80 -j DROP",
        "-A FORWARD -m ndpi --dport 80 --sport 81 -j DROP",
        "-A FORWARD -m ndpi --to -j DROP",
        "-A FORWARD -j NETFLOW --proto 7",
        "-A FORWARD -j NETFLOW --mark 7 ! --fragment",
        "-A FORWARD -m ndpi --range -4 -j DROP",
        "-A FORWARD -m ndpi --range -10 -j DROP",
    ] {
        let text = text.replace("FORWARD -m tcp", "FORWARD -p tcp -m tcp");
        assert_eq!(printed(&text), text);
        let (rule, warnings) = rule(&text);
        let protocol = rule.header.as_ref().and_then(|header| header.protocol());
        assert_eq!(protocol.is_some(), text.contains("-p tcp"), "{text}");
        let fragment = rule.header.as_ref().and_then(|header| header.fragment());
        assert_eq!(fragment, None, "{text}");
        assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
    }
    let lost = loaded("-A FORWARD -m odd --range -4 -j DROP", Family::Ipv6).unwrap();
    let rules = lost.ruleset.tables[0].chains.iter().map(|chain| chain.rules.len());
    assert_eq!(rules.sum::<usize>(), 1, "-4 is a value, not a rule of the other family");
}

#[test]
fn options_of_the_common_header_and_of_later_extensions_stay_theirs() {
    let text = "-A FORWARD -m ndpi --http -s 10.0.0.1 --dport 80 -p udp -m udp --dport 53 -j MARK --set-mark 1";
    let expected = "-A FORWARD -s 10.0.0.1/32 -p udp -m ndpi --http --dport 80 -m udp --dport 53 \
                    -j MARK --set-xmark 0x1/0xffffffff";
    assert_eq!(printed(text), expected);
    assert_eq!(printed(expected), expected);
    // Between them, what no known one declares may still be the unknown one's.
    let text = "-A FORWARD -m ndpi -m mark --mark 1 --proto 7 -j DROP";
    let expected = "-A FORWARD -m ndpi --proto 7 -m mark --mark 0x1 -j DROP";
    assert_eq!(printed(text), expected);
    // A target that stands before it.
    let text = "-A FORWARD -j LOG -m ndpi --log-prefix x -m limit --limit 1/s";
    assert_eq!(printed(text), "-A FORWARD -m ndpi --log-prefix x -m limit --limit 1/sec -j LOG");
    assert_eq!(
        printed("-A FORWARD -j odd --x -m mark --mark 1"),
        "-A FORWARD -m mark --mark 0x1 -j odd --x"
    );
    // Without one, abbreviations are what they were.
    assert_eq!(printed("-A FORWARD --proto udp -j DROP"), "-A FORWARD -p udp -j DROP");
}

#[test]
fn words_of_an_unknown_extension_print_as_they_stand() {
    for text in [
        r#"-A FORWARD -j JOOL --instance "default""#,
        r#"-A FORWARD -m webstr ! --url "a b\"c" --x=1 --y= -z5 'q' a\b -j DROP"#,
        r#"-A FORWARD -m odd ! --x ! 5 6 -j DROP"#,
        r#"-A FORWARD -m odd --x "!" "-j" "" - -j DROP"#,
        r#"-A FORWARD -m odd --list a,b c -m odd --list d -m other -j DROP"#,
        r#"-A FORWARD -m layer7 --l7proto "http" -g chain"#,
    ] {
        assert_eq!(printed(text), text);
    }
    let text = r#"-A FORWARD -m odd --x="a b" -j DROP"#;
    assert_eq!(printed(text), r#"-A FORWARD -m odd --x "a b" -j DROP"#);
    assert_eq!(printed(&printed(text)), printed(text));
}

#[test]
fn a_file_with_targets_that_nobody_knows_is_not_refused() {
    for target in [
        "JOOL",
        "NETFLOW",
        "RAWSNAT --to-source 192.0.2.1/32",
        "ROUTE --gw 192.0.2.1",
        "MIRROR",
        "SAME --to 192.0.2.1-192.0.2.4 --nodst",
        "NEVER_HEARD",
        "odd-one --with 1",
    ] {
        let text = format!("-A FORWARD -j {target}");
        assert_eq!(printed(&text), text);
        let (rule, warnings) = rule(&text);
        assert!(matches!(rule.action, Action::Target(_)), "{text}");
        let name = target.split(' ').next().unwrap();
        assert_eq!(warnings, [format!("-j {name}: not evaluated, kept as it stands")]);
    }
    // A chain that is declared later is a chain.
    let (rule, warnings) = rule("-A FORWARD -j LATER\n:LATER - [0:0]");
    assert!(matches!(rule.action, Action::Jump(_)) && warnings.is_empty());
    assert!(refused("-A FORWARD -j LATER --x\n:LATER - [0:0]").contains("line 3 has a target"));
}

#[test]
fn a_misspelt_name_is_an_error_with_the_one_that_is_meant() {
    for (text, column, meant) in [
        ("-A FORWARD -m contrack --ctstate NEW -j ACCEPT", 15, "conntrack"),
        ("-A FORWARD -j ACEPT", 15, "ACCEPT"),
        ("-A POSTROUTING -j MASQUERAD --random", 19, "MASQUERADE"),
        ("-A FORWARD -j REJCT", 15, "REJECT"),
    ] {
        let error = refused(text);
        assert!(error.starts_with(&format!("3:{column}: ")), "{error}");
        assert!(error.contains(&format!("is it {meant}?")), "{error}");
    }
    assert_eq!(
        refused("-A FORWARD -j missing"),
        "3:15: expected a chain of table mangle or a target, found \"missing\""
    );
    assert_eq!(
        refused("-A FORWARD -g JOOL"),
        "3:15: expected a chain of table mangle, found \"JOOL\""
    );
    assert!(refused("-A FORWARD -j DROP --x").contains("an option of this rule's"));
}

#[test]
fn what_an_unknown_extension_is_in_another_family_is_not_known() {
    let rules = "-A FORWARD -m ndpi --proto 7 -j ACCEPT\n-A FORWARD -j NETFLOW --a 1 2";
    let loaded = loaded(rules, Family::Ipv4).unwrap();
    let converted = convert(&loaded.ruleset, Family::Ipv6);
    let lost: Vec<_> = converted.losses.iter().map(|loss| (&*loss.what, loss.decides)).collect();
    assert_eq!(
        lost,
        [("-m ndpi, which is not known", true), ("-j NETFLOW, which is not known", true)]
    );
    assert!(!converted.text.contains("ndpi") && !converted.text.contains("NETFLOW"));
    assert!(convert(&loaded.ruleset, Family::Ipv4).text.contains(rules));
}
