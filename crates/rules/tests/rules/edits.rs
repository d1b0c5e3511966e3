//! Sets that are changed from outside: against ipset itself where it runs, and all or nothing of a text.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use conntrack::SECOND;
use proptest::prelude::*;
use rules::ipset::{EditError, Edited, MOST_ELEMENTS, Sets};

/// Sets of every sort that ipset has everywhere.
const SETS: &str = "create a hash:ip family inet maxelem 65536 timeout 100 counters\n\
    create b hash:ip family inet maxelem 65536 timeout 50 counters\n\
    create n hash:net family inet maxelem 65536\n\
    create six hash:net family inet6 maxelem 65536 timeout 0\n\
    create p hash:ip,port family inet maxelem 65536\n\
    create i hash:net,iface family inet maxelem 65536\n\
    create m bitmap:ip,mac range 10.0.0.0-10.0.0.255\n\
    create w bitmap:port range 1-100\n\
    create f hash:ip family inet maxelem 2\n\
    create x hash:net family inet maxelem 65536 skbinfo\n\
    create l list:set size 8\n\
    add n 10.0.0.0/8\nadd p 10.0.0.1,tcp:80\nadd l n\n";

fn saved(sets: &Sets) -> String {
    sets.save(None, usize::MAX, SECOND).iter().map(rules::ipset::SavedSet::text).collect()
}

fn sets() -> Sets {
    let mut sets = Sets::parse(SETS).unwrap();
    sets.begin(Some(SECOND));
    sets
}

/// A line of a set that there is, or nearly.
fn line() -> impl Strategy<Value = String> {
    let elements: &[(&str, &[&str])] = &[
        (
            "a",
            &[
                "10.0.0.1",
                "10.0.0.2",
                "10.0.0.3 timeout 7",
                "10.0.0.0/29",
                "10.0.0.4 packets 3 bytes 9",
            ],
        ),
        ("b", &["10.0.0.1", "10.0.0.9 timeout 0"]),
        ("n", &["10.0.0.0/8", "10.1.0.0/16 nomatch", "192.0.2.1", "300.0.0.1"]),
        ("six", &["2001:db8::/32", "::1", "::/1 timeout 9"]),
        ("p", &["10.0.0.1,tcp:80", "10.0.0.1,udp:53-55", "10.0.0.2,sctp:7", "10.0.0.2,gre:0"]),
        ("i", &["10.0.0.0/8,eth0", "10.0.0.0/8,wl wildcard", "10.0.0.0/8,physdev:eth0"]),
        ("m", &["10.0.0.1,00:11:22:33:44:55", "10.0.0.1", "10.0.0.2", "10.1.0.2"]),
        ("w", &["1", "5-9", "101"]),
        ("x", &["10.0.0.0/8", "10.0.0.0/9 skbmark 0x5/0xff", "10.0.0.0/9 skbmark 0x7"]),
        ("l", &["n", "a", "l", "none"]),
        ("f", &["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
        ("none", &["10.0.0.1"]),
    ];
    let of: Vec<String> = elements
        .iter()
        .flat_map(|(set, of)| of.iter().map(move |element| format!("{set} {element}")))
        .collect();
    let word = prop::sample::select(vec!["add", "add", "add", "del"]);
    let element = (word, prop::sample::select(of), any::<bool>()).prop_map(|(word, of, exist)| {
        // What a `del` takes is the element alone.
        // Of a range that is refused in its middle ipset keeps the first part. A full set that has lost an element takes
        // another one where its hash finds the gap.
        let exist = exist || ["/29", "53-55", "5-9"].iter().any(|range| of.contains(range));
        let word = if of.starts_with("f ") { "add" } else { word };
        let of = match word {
            "del" => of.split(" timeout").next().unwrap_or_default().to_owned(),
            _ => of,
        };
        let of = of.replace(if word == "del" { " nomatch" } else { "\0" }, "");
        let of = of.replace(if word == "del" { " wildcard" } else { "\0" }, "");
        let of = if word == "del" { of.split(" skb").next().unwrap().to_owned() } else { of };
        let of = if word == "del" { of.split(" packets").next().unwrap().to_owned() } else { of };
        format!("{word} {of}{}", if exist { " -exist" } else { "" })
    });
    let whole = vec!["swap a b", "swap a n", "swap a none", "flush n", "flush none", "flush l"];
    prop_oneof![6 => element, 1 => prop::sample::select(whole).prop_map(str::to_owned)]
}

/// What ipset makes of the sets and then of these lines, one by one: which it refuses and in which words; what is left.
fn ipset(lines: &[String]) -> Option<(Vec<Option<String>>, BTreeSet<String>)> {
    let script = "ipset restore || exit 9\nwhile IFS= read -r line <&3; do \
        ipset $line 2>&1 | head -n 1; echo \"= ${line}\"; done\nipset save";
    let folder = std::env::temp_dir().join(format!("tamis-edits-{}", std::process::id()));
    std::fs::write(&folder, lines.join("\n") + "\n").ok()?;
    let mut child = Command::new("unshare")
        .args(["-n", "sh", "-c", &format!("exec 3<{}; {script}", folder.display())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(SETS.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    let _ = std::fs::remove_file(folder);
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    let (mut told, mut refused, mut left) = (None, Vec::new(), BTreeSet::new());
    for line in text.lines() {
        match (line.strip_prefix("ipset v7.17: "), line.strip_prefix("= ")) {
            (Some(what), _) => told = Some(what.to_owned()),
            (_, Some(_)) => refused.push(told.take()),
            _ if line.starts_with("add ") => _ = left.insert(plain(line)),
            _ => {}
        }
    }
    Some((refused, left))
}

/// An element as both print it: seconds pass meanwhile, and ipset names what has a name.
fn plain(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_time = |at: usize| at > 0 && words[at - 1] == "timeout" && words[at] != "0";
    let words = words.iter().enumerate().map(|(at, word)| if is_time(at) { "N" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Without a kernel that has ipset, or where only others may use it, there is nothing to compare with.
fn has_ipset() -> bool {
    let has = ipset(&[]).is_some_and(|(_, left)| left.len() == 3);
    if !has {
        eprintln!("skipped: ipset in a network namespace (not root, or not there)");
    }
    has
}

#[test]
fn lines_do_what_ipset_does() {
    if !has_ipset() {
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(12));
    let result = runner.run(&prop::collection::vec(line(), 60..120), |lines| {
        let (refused, left) = ipset(&lines).expect("it was there before");
        let mut sets = sets();
        for (line, told) in lines.iter().zip(&refused) {
            let done = sets.restore(line, SECOND);
            prop_assert_eq!(
                done.is_err(),
                told.is_some(),
                "{}: {:?}, ipset: {:?}",
                line,
                done,
                told
            );
            // Ours say what was expected where a word cannot be read.
            if let (Err(error), Some(told)) = (done, told)
                && !error.what.starts_with("expected ")
            {
                prop_assert_eq!(&error.what, told, "{}", line);
            }
        }
        let own: BTreeSet<String> =
            saved(&sets).lines().filter(|line| line.starts_with("add ")).map(plain).collect();
        prop_assert_eq!(own, left);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// As single requests until one is refused; as one request all of it or nothing.
    #[test]
    fn a_text_is_done_whole_or_not_at_all(lines in prop::collection::vec(line(), 1..12)) {
        let (mut one_by_one, mut whole) = (sets(), sets());
        let before = saved(&whole);
        let done = lines.iter().try_for_each(|line| one_by_one.restore(line, SECOND).map(drop));
        match whole.restore(&lines.join("\n"), SECOND) {
            Ok(_) => {
                prop_assert!(done.is_ok());
                prop_assert_eq!(saved(&whole), saved(&one_by_one));
            }
            Err(error) => {
                prop_assert_eq!(done.map_err(|error| error.what), Err(error.what));
                prop_assert_eq!(saved(&whole), before);
            }
        }
    }

    #[test]
    fn what_is_saved_is_read_as_the_same(lines in prop::collection::vec(line(), 0..40)) {
        let mut sets = sets();
        lines.iter().for_each(|line| drop(sets.restore(line, SECOND)));
        let text = saved(&sets);
        let mut read = Sets::parse(&text).unwrap();
        read.begin(Some(SECOND));
        prop_assert_eq!(saved(&read), text);
    }
}

#[test]
fn times_begin_with_the_change() {
    let mut sets = sets();
    sets.restore("add a 10.0.0.1 timeout 5\nadd a 10.0.0.2", 11 * SECOND).unwrap();
    let at = |sets: &Sets, seconds: u64| {
        let set = sets.save(Some("a"), 10, seconds * SECOND).remove(0);
        set.some.join(", ")
    };
    let both = "10.0.0.1 timeout 4 packets 0 bytes 0, 10.0.0.2 timeout 99 packets 0 bytes 0";
    assert_eq!(at(&sets, 12), both);
    assert_eq!(at(&sets, 17), "10.0.0.2 timeout 94 packets 0 bytes 0");
    // One that has timed out is not there: it can be added, and not removed.
    assert!(sets.restore("del a 10.0.0.1", 17 * SECOND).is_err());
    assert_eq!(sets.restore("add a 10.0.0.1", 17 * SECOND).unwrap().added, 1);
}

#[test]
fn a_refusal_names_its_place() {
    let mut sets = sets();
    for (text, line, column, what) in [
        (
            "add a 10.0.0.1\n\n  add a 10.0.0.1",
            3,
            9,
            "Element cannot be added to the set: it's already added",
        ),
        ("# no\nkick a", 2, 1, "expected add, del, flush or swap, found \"kick\""),
        ("add a 10.0.0.1 comment", 1, 23, "expected a value for comment"),
        ("swap a", 1, 7, "expected a value for swap"),
        ("flush a b", 1, 9, "expected the end of the line, found \"b\""),
        ("create z hash:ip", 1, 1, "expected add, del, flush or swap, found \"create\""),
    ] {
        let error = sets.restore(text, SECOND).unwrap_err();
        assert_eq!(error, EditError { line, column, what: what.to_owned() }, "{text}");
    }
    let many = "add p 10.0.0.0/15,tcp:80";
    let error = sets.restore(many, SECOND).unwrap_err();
    assert_eq!(error.what, format!("expected at most {MOST_ELEMENTS} elements in one text"));
    let done = sets.restore("add w 5-9\ndel w 6\nflush b\nswap a b\n", SECOND);
    assert_eq!(done, Ok(Edited { added: 5, deleted: 1, flushed: 1, swapped: 1 }));
}
