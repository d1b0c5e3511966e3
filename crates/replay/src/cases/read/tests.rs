//! What is taken, and where what is refused.

use proptest::prelude::*;

use super::*;
use crate::cases::Given;
use dataplane::Config;

const CASE: &str = "[[case]]\nname = \"n\"\npacket = \"udp 1.2.3.4:5 > 6.7.8.9:10\"\n";

fn read(text: &str) -> Cases {
    Cases::from_text("dir/cases.toml", text).unwrap()
}

fn refusal(text: &str) -> String {
    Cases::from_text("c.toml", text).unwrap_err().to_string()
}

#[test]
fn everything_that_may_stand_in_a_file() {
    let cases = read(
        r#"
rules = "rules.v4"
rules6 = "/etc/rules.v6"
[defaults]
in = "eth0"
out = "eth1"
net = ["eth0=0.0.0.0/0", "eth1=10.0.0.0/8"]
local = "192.0.2.1"
path = "input"
ct = "kernel"
queue-verdict = ["accept", "3=drop"]
[[case]]
name = "one"
packet = "tcp 1.2.3.4:5 > 6.7.8.9:10 syn"
expect = "drop"
by = "filter/FORWARD/policy"

[[case]]
name = "two"
packets = ["udp 1.2.3.4:5 > 6.7.8.9:10", "udp 6.7.8.9:10 > 1.2.3.4:5"]
expect = ["accept", "unknown"]
by_text = "-A FORWARD -j ACCEPT"
"#,
    );
    assert_eq!(cases.rules.as_ref().unwrap().path(), "dir/rules.v4");
    assert_eq!(cases.rules6.as_ref().unwrap().path(), "/etc/rules.v6");
    assert_eq!(cases.defaults.input.as_deref(), Some("eth0"));
    assert_eq!(cases.defaults.nets.len(), 2);
    assert_eq!(cases.defaults.local, [Network::parse("192.0.2.1").unwrap()]);
    assert_eq!(cases.defaults.path, Some(Path::Input));
    assert_eq!(cases.defaults.ct, Some(Mode::Kernel));
    assert_eq!(cases.defaults.queues.to_string(), "accept, 3=drop");
    let [one, two] = &cases.cases[..] else { panic!("{cases:?}") };
    assert_eq!((one.line, two.line), (12, 18));
    assert_eq!(one.packets[0].verdict, Expect::Drop);
    assert_eq!(one.by, Some(ExpectedBy::Place(PlaceName::parse("filter/FORWARD/policy").unwrap())));
    let verdicts: Vec<_> = two.packets.iter().map(|packet| packet.verdict).collect();
    assert_eq!(verdicts, [Expect::Accept, Expect::Unknown]);
}

#[test]
fn one_verdict_is_expected_of_every_packet() {
    let cases = read(
        "[[case]]\nname = 'n'\nexpect = 'reject'\n\
         packets = ['udp 1.2.3.4:5 > 6.7.8.9:10', 'icmp 1.2.3.4 > 6.7.8.9']",
    );
    assert!(cases.cases[0].packets.iter().all(|packet| packet.verdict == Expect::Reject));
    assert_eq!(cases.rules, None);
}

#[test]
fn the_command_line_counts_before_the_defaults() {
    let cases = read(&format!(
        "[defaults]\nin = 'a'\nout = 'b'\nnet = 'a=10.0.0.0/8'\nlocal = '10.0.0.1'\npath = 'output'\nct = 'off'\n\
         {CASE}expect = 'drop'"
    ));
    let filled = cases.defaults.under(Config::default(), Given::default());
    assert_eq!((filled.input.as_deref(), filled.output.as_deref()), (Some("a"), Some("b")));
    assert_eq!((filled.nets.len(), filled.path), (1, Some(Path::Output)));
    assert_eq!(filled.ct.mode, Mode::Off);
    assert!(filled.host.local.is_some());
    let given = Config { input: Some("x".to_owned()), ..Config::default() };
    let filled = cases.defaults.under(given, Given { path: true, ct: true });
    assert_eq!((filled.input.as_deref(), filled.path), (Some("x"), None));
    assert_eq!(filled.ct.mode, Mode::Midstream);
}

#[test]
fn unknown_keys_are_named_with_what_was_expected() {
    let refused = refusal(&format!("{CASE}expct = \"drop\"\n"));
    assert_eq!(
        refused,
        "c.toml:4:1: expected one of name packet packets expect by by_text, found \"expct\""
    );
    let refused = refusal("rulez = 'x'\n");
    assert_eq!(refused, "c.toml:1:1: expected one of rules rules6 defaults case, found \"rulez\"");
    let refused = refusal("[defaults]\niface = 'x'\n");
    assert_eq!(
        refused,
        "c.toml:2:1: expected one of in out net local path ct queue-verdict mac options payload seq ack win chunk \
         type spi label id df, found \"iface\""
    );
}

#[test]
fn a_wrong_packet_is_named_by_its_column_in_the_file() {
    let refused =
        refusal("[[case]]\nname = 'n'\npacket = 'tcp 1.2.3.4:5 > 6.7.8.9:10 sin'\nexpect='drop'");
    assert!(refused.starts_with("c.toml:3:38: expected TCP flags"), "{refused}");
    let refused = refusal(
        "[[case]]\nname = 'n'\npackets = [\n  'tpc 1.2.3.4:5 > 6.7.8.9:10',\n]\nexpect='drop'",
    );
    assert!(refused.starts_with("c.toml:4:4: expected a protocol"), "{refused}");
    // Escapes move columns: then the string itself is named.
    let refused = refusal("[[case]]\nname = 'n'\npacket = \"t\\u0070c 1.2.3.4:5\"\nexpect='drop'");
    assert!(refused.starts_with("c.toml:3:"), "{refused}");
}

#[test]
fn what_is_missing_or_twice_is_said() {
    let place_and_what = [
        ("", "c.toml:1:1: expected at least one [[case]]"),
        ("case = []", "c.toml:1:10: expected at least one [[case]]"),
        ("case = 3", "c.toml:1:8: expected [[case]] tables"),
        (
            "[[case]]\npacket = 'x'\nexpect = 'drop'",
            "c.toml:1:1: expected name = … in this [[case]]",
        ),
        (
            "[[case]]\nname = 'n'\nexpect = 'drop'",
            "c.toml:1:1: expected packet = … in this [[case]]",
        ),
        ("[[case]]\nname = 'n'\npacket = 'x'", "c.toml:1:1: expected expect = … in this [[case]]"),
        (
            "[[case]]\nname = 'n'\npacket = 'x'\npackets = ['x']\nexpect = 'drop'",
            "c.toml:4:11: expected either packet or packets",
        ),
        (
            "[[case]]\nname = 'n'\npackets = []\nexpect = 'drop'",
            "c.toml:3:11: expected a list of SPECs, at least one",
        ),
        ("[[case]]\nname = 7", "c.toml:2:8: expected a string, found integer"),
        ("defaults = 7\n[[case]]", "c.toml:1:12: expected a table, found integer"),
        (
            "[defaults]\npath = 'up'",
            "c.toml:2:8: expected one of forward input output auto, found \"up\"",
        ),
        (
            "[defaults]\nct = 'loose'",
            "c.toml:2:6: expected one of kernel midstream off, found \"loose\"",
        ),
        ("[defaults]\nnet = 'eth0'", "c.toml:2:7: expected IFACE=ADDRESS/BITS, found \"eth0\""),
        ("[defaults]\nlocal = ['x']", "c.toml:2:10: expected ADDRESS or ADDRESS/BITS, found \"x\""),
    ];
    for (text, refused) in place_and_what {
        assert_eq!(refusal(text), refused, "{text}");
    }
}

#[test]
fn wrong_expectations_are_said() {
    let with = |line: &str| refusal(&format!("{CASE}{line}"));
    assert_eq!(
        with("expect = 'dropped'"),
        "c.toml:4:10: expected one of accept drop reject unknown, found \"dropped\""
    );
    assert_eq!(
        with("expect = ['drop', 'drop']"),
        "c.toml:4:10: expected as many verdicts as packets (1), found 2"
    );
    assert_eq!(
        with("expect = []"),
        "c.toml:4:10: expected a verdict, or a list with one for each packet"
    );
    let refused = with("expect = 'drop'\nby = 'FORWARD/12'");
    assert!(refused.starts_with("c.toml:5:6: expected TABLE/CHAIN/NUMBER"), "{refused}");
    assert_eq!(
        with("expect = 'drop'\nby = 'filter/FORWARD/1'\nby_text = '-A x'"),
        "c.toml:6:11: expected either by or by_text"
    );
}

#[test]
fn text_that_is_no_toml_is_refused_at_its_place() {
    let refused = refusal("[[case]]\nname = \n");
    assert!(refused.starts_with("c.toml:2:"), "{refused}");
    assert!(!refused.contains('\n'), "{refused}");
}

const WHOLE: &str = "rules = 'r'\n[defaults]\nin = 'a'\nnet = ['a=10.0.0.0/8']\npath = 'input'\n\
                     [[case]]\nname = 'n'\npackets = ['udp 1.2.3.4:5 > 6.7.8.9:10']\n\
                     expect = ['drop']\nby = 'filter/FORWARD/1'\n";

proptest! {
    /// A file that somebody mangled is read, or refused at a place that it has.
    #[test]
    fn any_change_is_read_or_refused_at_a_place(at in 0..WHOLE.len(), cut in 0..9usize, put in "\\PC{0,3}") {
        let text = format!("{}{put}{}", &WHOLE[..at], &WHOLE[(at + cut).min(WHOLE.len())..]);
        if let Err(refused) = Cases::from_text("c", &text) {
            // What begins with a table is taken for rules.
            if text.starts_with('*') {
                return Ok(());
            }
            let Error::Cases { line, column, .. } = refused else { panic!("{refused}") };
            prop_assert!(line <= text.matches('\n').count() + 1 && column <= text.len() + 1);
            prop_assert!(line > 0 && column > 0);
        }
    }
}
