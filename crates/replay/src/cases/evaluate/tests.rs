//! Passing and failing cases, and every way to show them.

use super::super::Cases;
use super::*;
use rules::save::LoadOptions;

const RULES: &str = "\
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:web - [0:0]
-A FORWARD -i wan0 -p tcp -m tcp --dport 443 -j web
-A FORWARD -p tcp -m tcp --dport 22 -j REJECT --reject-with tcp-reset
-A FORWARD -p udp -m statistic --mode nth --every 2 --packet 0 -j ACCEPT
-A web -s 198.51.100.0/24 -j ACCEPT
COMMIT
";

fn rules() -> [RulesFile; 1] {
    [RulesFile::from_text("my rules.v4", RULES.to_owned(), &LoadOptions::default()).unwrap()]
}

fn cases(text: &str) -> Cases {
    Cases::from_text("cases.toml", text).unwrap()
}

/// What is wrong about a case, `ok` if nothing is.
fn wrong(case: &str) -> String {
    let (rules, cases) = (rules(), cases(&format!("[[case]]\nname = \"n\"\n{case}")));
    let results = evaluate(cases, &rules, &crate::spec::config().into(), "");
    results.results[0].wrong.as_ref().map_or_else(|| "ok".to_owned(), |wrong| wrong.what.clone())
}

const WEB: &str = "packet = 'in=wan0 out=lan0 tcp 198.51.100.7:5 > 10.0.0.9:443 syn'\n";
const SSH: &str = "packet = 'in=wan0 out=lan0 tcp 198.51.100.7:5 > 10.0.0.9:22 syn'\n";
const DNS: &str = "packet = 'in=wan0 out=lan0 icmp 198.51.100.7 > 10.0.0.9'\n";

#[test]
fn cases_pass_by_verdict_place_and_text() {
    for case in [
        format!("{WEB}expect = 'accept'"),
        format!("{WEB}expect = 'accept'\nby = 'filter/web/1'"),
        format!("{WEB}expect = 'accept'\nby_text = '-A web -s 198.51.100.0/24 -j ACCEPT'"),
        format!("{SSH}expect = 'reject'\nby = 'filter/FORWARD/2'"),
        // As a person types it, not as it is saved.
        format!(
            "{SSH}expect = 'reject'\nby_text = '-A FORWARD -p tcp --dport ssh -j REJECT --reject-with tcp-reset'"
        ),
        format!("{DNS}expect = 'drop'\nby = 'filter/FORWARD/policy'"),
        format!("{}expect = 'drop'\nby = 'ttl'", WEB.replace("syn", "syn ttl=1")),
        "packet = 'tcp 198.51.100.7:5 > 10.0.0.9:443 syn'\nexpect = 'unknown'".to_owned(),
    ] {
        assert_eq!(wrong(&case), "ok", "{case}");
    }
}

#[test]
fn a_failing_case_says_what_was_expected_and_what_decided() {
    for (case, what) in [
        (
            format!("{WEB}expect = 'drop'"),
            "expected drop, got accept by filter/web/1 L9 -A web -s 198.51.100.0/24 -j ACCEPT",
        ),
        (
            format!("{DNS}expect = 'accept'"),
            "expected accept, got drop by filter/FORWARD/policy L3",
        ),
        (
            format!("{DNS}expect = 'drop'\nby = 'filter/FORWARD/9'"),
            "expected drop by filter/FORWARD/9 (chain FORWARD has 3 rules), got drop by \
             filter/FORWARD/policy L3",
        ),
        (
            format!("{}expect = 'accept'", WEB.replace("syn", "syn ttl=1")),
            "expected accept, got drop by time to live ran out",
        ),
        (
            "packet = 'icmp 2001:db8::1 > 2001:db8::2'\nexpect = 'drop'".to_owned(),
            "expected drop, got skip: there are no rules for its family",
        ),
        (
            "packet = 'tcp 198.51.100.7:5 > 10.0.0.9:443 syn'\nexpect = 'accept'".to_owned(),
            "expected accept, got unknown: depends on L6 -i: the input interface is not known",
        ),
    ] {
        assert_eq!(wrong(&case), what, "{case}");
    }
}

#[test]
fn a_rule_that_is_gone_fails_the_case_and_is_named() {
    let by = |by: &str| wrong(&format!("{DNS}expect = 'drop'\n{by}"));
    assert!(by("by = 'raw/PREROUTING/1'").contains("(there is no table raw)"));
    assert!(by("by = 'filter/shop/1'").contains("(table filter has no chain shop)"));
    assert!(by("by_text = '-A FORWARD -j ACCEPT'").contains("(no rule reads so)"));
    assert!(by("by_text = '-A FORWARD -j shop'").contains("(no such rule: expected"));
    assert!(by("by_text = 'DROP'").contains("(no such rule: expected"));
    assert!(by("by_text = ''").contains("(no such rule: expected -A CHAIN"));
    // There is such a rule, but another one decided.
    let other = by("by_text = '-A web -s 198.51.100.0/24 -j ACCEPT'");
    assert!(other.contains("by -A web -s 198.51.100.0/24 -j ACCEPT, got drop by"), "{other}");
}

#[test]
fn a_conversation_runs_through_one_handler_and_a_case_starts_afresh() {
    let packet = "in=lan0 out=wan0 udp 10.0.0.9:4000 > 192.0.2.53:53";
    let twice = format!("packets = ['{packet}', '{packet}']\n");
    // The rule takes every other packet: the first one of each case.
    assert_eq!(wrong(&format!("{twice}expect = ['accept', 'drop']")), "ok");
    assert_eq!(wrong(&format!("packet = '{packet}'\nexpect = 'accept'")), "ok");
    let second = wrong(&format!("{twice}expect = 'accept'"));
    assert!(second.starts_with("packet 2 of 2: expected accept, got drop"), "{second}");
    let by = wrong(&format!("{twice}expect = ['accept', 'drop']\nby = 'filter/FORWARD/3'"));
    assert!(by.starts_with("packet 2 of 2: expected drop by filter/FORWARD/3, got"), "{by}");
}

/// Evaluates a case that passes and a case that fails, whose name every format has to escape.
fn two(see: impl FnOnce(&Results)) {
    let rules = rules();
    let cases = cases(&format!(
        "[[case]]\nname = 'good'\n{WEB}expect = 'accept'\n\
         [[case]]\nname = \"a <b> & \\\"c\\\", 100%:\\u0000\\n]]>d\"\n{SSH}expect = 'accept'"
    ));
    see(&evaluate(cases, &rules, &crate::spec::config().into(), " --table filter"));
}

const WHY: &str = "tamis why 'my rules.v4' --table filter --packet \
                   'in=wan0 out=lan0 tcp 198.51.100.7:5 > 10.0.0.9:22 syn'";

#[test]
fn text_names_the_case_and_the_command_to_type() {
    two(|results| {
        let text = results.text();
        let lines: Vec<&str> = text.lines().collect();
        let start = "FAIL cases.toml:5 a <b> & \"c\", 100%:\\u{0}\\n]]>d: expected accept, got reject by filter/FORWARD/2 L7 -A";
        assert!(lines[0].starts_with(start), "{text}");
        assert_eq!(lines[1].trim(), WHY);
        assert_eq!(lines[2], "1 passed, 1 failed");
        assert_eq!(lines[3], format!("next: {WHY} --near 3"));
    });
}

#[test]
fn json_holds_every_case() {
    two(|results| {
        let json = results.json();
        assert_eq!(json["schema"], "tamis.test/1");
        assert_eq!((json["passed"].as_u64(), json["failed"].as_u64()), (Some(1), Some(1)));
        let [good, bad] = &json["cases"].as_array().unwrap()[..] else { panic!("{json}") };
        assert_eq!((good["passed"].as_bool(), bad["passed"].as_bool()), (Some(true), Some(false)));
        assert_eq!(good["packets"][0]["by"], "filter/web/1");
        assert_eq!(bad["packets"][0]["verdict"], "reject");
        assert_eq!(bad["why"], WHY);
        assert!(bad["failure"].as_str().unwrap().starts_with("expected accept, got reject"));
    });
}

#[test]
fn junit_is_well_formed_whatever_the_names_hold() {
    two(|results| {
        let junit = results.junit();
        let document = roxmltree::Document::parse(&junit).unwrap();
        let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
        let number = |name: &str| suite.attribute(name).unwrap().to_owned();
        assert_eq!((number("tests"), number("failures")), ("2".to_owned(), "1".to_owned()));
        let cases: Vec<_> = suite.children().filter(|node| node.has_tag_name("testcase")).collect();
        assert_eq!(cases[0].attribute("name"), Some("good"));
        assert_eq!(cases[0].children().count(), 0);
        assert_eq!(cases[1].attribute("name"), Some("a <b> & \"c\", 100%:\u{fffd}\n]]>d"));
        assert_eq!(cases[1].attribute("line"), Some("5"));
        let failure = cases[1].children().find(|node| node.has_tag_name("failure")).unwrap();
        assert!(failure.attribute("message").unwrap().starts_with("expected accept, got reject"));
        assert!(failure.text().unwrap().ends_with(WHY));
    });
}

#[test]
fn github_annotations_are_one_line_each() {
    two(|results| {
        let github = results.github();
        assert_eq!(github.lines().count(), 1, "{github}");
        let head = "::error file=cases.toml,line=5,title=a <b> & \"c\"%2C 100%25%3A\\u{0}%0A]]>d::expected accept, got reject";
        assert!(github.starts_with(head), "{github:?}");
        assert!(github.contains("%0Atamis why 'my rules.v4'"), "{github}");
    });
}

/// Each case has a table of its own: thousands of cases are recorded at the same time.
#[test]
fn a_case_has_room_for_its_own_connections_and_no_more() {
    let setup = Setup::default();
    assert_eq!(small(&setup, 1).config.ct.max, 16);
    assert_eq!(small(&setup, 5000).config.ct.max, 10_000);
    let mut tight = Setup::default();
    tight.config.ct.max = 3;
    assert_eq!(small(&tight, 100).config.ct.max, 3, "--ct-max wins");
    let line = "udp 17 29 src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 sport=2 dport=1\n";
    let listed = conntrack::Listing::parse(&line.repeat(40)).unwrap();
    let mut setup = Setup::default();
    setup.start.connections = Some(std::sync::Arc::new(listed));
    assert_eq!(small(&setup, 1).config.ct.max, 42, "what is listed has its place");
}

#[test]
fn what_a_case_does_not_give_is_given_once_for_all() {
    const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcpmss ! --mss 536:65535 -j DROP\n\
        -A FORWARD -m length --length 2000 -j DROP\nCOMMIT\n";
    let rules = [RulesFile::from_text("r.v4", RULES.to_owned(), &LoadOptions::default()).unwrap()];
    let wrong = |defaults: &str| {
        let text = format!("{defaults}[[case]]\nname = \"n\"\n{WEB}expect = 'accept'\n");
        let results = evaluate(cases(&text), &rules, &crate::spec::config().into(), "");
        results.results[0].wrong.as_ref().map_or_else(String::new, |wrong| wrong.what.clone())
    };
    let what = wrong("");
    assert!(what.contains("write options=mss:1460 or options=usual, and len=BYTES"), "{what}");
    assert!(what.contains("below [defaults]: options = \"usual\"; payload = \"none\""), "{what}");
    assert_eq!(wrong("[defaults]\noptions = \"usual\"\npayload = \"none\"\n"), "");
    // The command that is shown tells the same story.
    let text = format!(
        "[defaults]\nspi = \"1\"\noptions = \"usual\"\n[[case]]\nname = \"n\"\n{WEB}expect = 'drop'"
    );
    let command = evaluate(cases(&text), &rules, &crate::spec::config().into(), "").text();
    assert!(command.contains(":443 syn options=usual'"), "{command}");
    // A packet that says it itself is as it says.
    let own = format!(
        "[defaults]\noptions = \"usual\"\npayload = \"none\"\n[[case]]\nname = \"n\"\n{}expect = 'drop'\n",
        WEB.replace("syn", "syn options=none")
    );
    let results = evaluate(cases(&own), &rules, &crate::spec::config().into(), "");
    assert_eq!(results.results[0].wrong, None);
    let error = Cases::from_text("c.toml", "[defaults]\nmac = \"1:2\"\n[[case]]\n").unwrap_err();
    assert!(
        error.to_string().starts_with("c.toml:2:7: expected xx:xx:xx:xx:xx:xx for mac"),
        "{error}"
    );
}
