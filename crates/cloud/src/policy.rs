//! [`Written`]: a policy as it is written in TOML, in a file of its own or in the configuration of a cloud.
//!
//! Contract: what is refused is refused with its place and what was expected: a word that is no node, a port that is none, lines that
//! no message takes, a `[[test]]` that the policy fails. So a policy that was read has passed its own tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use overlay::{ALL, Line, MOST_LINES, Name, Policy, Protocol, Service};
use serde::Deserialize;
use toml::Spanned;

/// Names and groups that a policy may have, and members of each group.
const MOST_NAMES: usize = 16_384;

/// A policy, and the text that it was read from.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) policy: Policy,
    /// The text without a version.
    pub(crate) text: String,
    /// The version that the text says it is of.
    pub(crate) version: Option<u64>,
}

/// The error that something else was expected in a part of the text.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) at: usize,
    pub(crate) what: String,
}

type Result<T> = std::result::Result<T, Wrong>;

/// A word, or several, with their places.
type Words = Spanned<Vec<Spanned<String>>>;

/// Groups by their names.
pub(crate) type Groups = BTreeMap<String, Vec<Spanned<String>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Option<Spanned<u64>>,
    #[serde(default)]
    groups: Groups,
    #[serde(default)]
    allow: Vec<Allow>,
    #[serde(default)]
    test: Vec<Test>,
}

/// `[[allow]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allow {
    between: Option<Words>,
    from: Option<Words>,
    to: Option<Words>,
    ports: Option<Words>,
}

/// `[[test]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Test {
    from: Spanned<String>,
    to: Spanned<String>,
    port: Spanned<String>,
    expect: Spanned<String>,
}

impl Wrong {
    /// The error with its place in a text of this name.
    pub(crate) fn placed(&self, name: &str, text: &str) -> String {
        let before = &text[..text.floor_char_boundary(self.at)];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("{name}:{line}:{column}: {}", self.what)
    }
}

impl From<toml::de::Error> for Wrong {
    fn from(error: toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        Self { at, what: error.message().to_owned() }
    }
}

/// The error for a text in place of which something else was expected.
pub(crate) fn wrong(found: &Spanned<String>, expected: &str) -> Wrong {
    let what = format!("expected {expected}, found \"{}\"", found.get_ref());
    Wrong { at: found.span().start, what }
}

impl Written {
    /// Reads a file of a policy.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let File { version, groups, allow, test } = toml::from_str(text)?;
        let policy = policy(&groups, &allow, &test)?;
        let (text, version) = match version {
            Some(version) => (without_line(text, version.span().start), Some(*version.get_ref())),
            None => (text.to_owned(), None),
        };
        Ok(Self { policy, text, version })
    }

    /// The policy that a configuration has.
    pub(crate) fn of_tables(groups: &Groups, allow: &[Allow], tests: &[Test]) -> Result<Self> {
        let policy = policy(groups, allow, tests)?;
        Ok(Self { policy, text: text(groups, allow, tests), version: None })
    }
}

/// A text without the line that this byte is in.
fn without_line(text: &str, at: usize) -> String {
    let at = text.floor_char_boundary(at);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    text[..start].to_owned() + &text[end..]
}

fn policy(groups: &Groups, allow: &[Allow], tests: &[Test]) -> Result<Policy> {
    let mut policy = Policy::default();
    for (group, members) in groups {
        let name = |it: &Spanned<String>| {
            it.get_ref().parse().map_err(|_| wrong(it, "the name of a node"))
        };
        let names = members.iter().map(name).collect::<Result<BTreeSet<Name>>>()?;
        policy.groups.insert(group.clone(), names);
    }
    if policy.groups.values().map(|members| members.len() + 1).sum::<usize>() > MOST_NAMES {
        let what = format!("expected at most {MOST_NAMES} groups and members of them");
        return Err(Wrong { at: 0, what });
    }
    for allow in allow {
        let (line, at) = allow.line(&policy)?;
        policy.lines.push(line);
        if policy.lines.len() > MOST_LINES {
            return Err(Wrong { at, what: format!("expected at most {MOST_LINES} [[allow]]") });
        }
    }
    if let (Some(pair), Some(last)) = (policy.crowded(), allow.last()) {
        let [one, other] =
            pair.map(|it| it.map_or("a node that is not named".to_owned(), |it| it.to_string()));
        let what =
            "expected lines that a message takes, 32 of 512 bytes together: too many concern";
        return Err(Wrong { at: last.at(), what: format!("{what} {one} and {other}") });
    }
    tests.iter().try_for_each(|test| test.passes(&policy))?;
    Ok(policy)
}

impl Allow {
    /// The line, and its place.
    fn line(&self, policy: &Policy) -> Result<(Line, usize)> {
        let at = self.at();
        let services = self.ports.as_ref().map(services).transpose()?.unwrap_or_default();
        let all = |them: &Words| {
            let words: Result<Vec<String>> =
                them.get_ref().iter().map(|it| word(it, policy)).collect();
            words.and_then(|words| match words.is_empty() {
                true => Err(Wrong { at: them.span().start, what: expected("at least one") }),
                false => Ok(words),
            })
        };
        let (from, to, both) = match (&self.between, &self.from, &self.to) {
            (Some(between), None, None) => {
                let [one, other]: [String; 2] =
                    all(between)?.try_into().map_err(|_| Wrong { at, what: expected("two") })?;
                (vec![one], vec![other], true)
            }
            (None, Some(from), Some(to)) => (all(from)?, all(to)?, false),
            _ => {
                let what = "expected between = [A, B], or from = [A, …] and to = [B, …]".to_owned();
                return Err(Wrong { at, what });
            }
        };
        Ok((Line { from, to, both, services }, at))
    }

    /// Where it is: the first of its values.
    fn at(&self) -> usize {
        let values = [&self.between, &self.from, &self.to, &self.ports];
        values.into_iter().flatten().map(|value| value.span().start).min().unwrap_or(0)
    }
}

fn expected(how_many: &str) -> String {
    let some = if how_many == "two" { "two groups" } else { "at least one group" };
    format!("expected {some}, or names of nodes, or \"*\" for all nodes")
}

fn word(word: &Spanned<String>, policy: &Policy) -> Result<String> {
    let text = word.get_ref();
    if policy.groups.contains_key(text) || text == ALL {
        return Ok(text.clone());
    }
    // Names are in lower case everywhere.
    match text.parse::<Name>() {
        Ok(name) => Ok(name.to_string()),
        Err(_) => Err(wrong(word, "a group or the name of a node")),
    }
}

fn services(ports: &Words) -> Result<Vec<Service>> {
    if ports.get_ref().is_empty() {
        let what =
            "expected at least one of \"tcp/22\", \"icmp\", …; without ports everything is allowed";
        return Err(Wrong { at: ports.span().start, what: what.to_owned() });
    }
    let service = |port: &Spanned<String>| {
        let what = "\"tcp/22\", \"udp/8000-8010\", \"tcp\", \"udp\" or \"icmp\"";
        port.get_ref().parse().map_err(|_| wrong(port, what))
    };
    let services = ports.get_ref().iter().map(service).collect::<Result<Vec<_>>>()?;
    let most = usize::from(u8::MAX);
    match services.len() > most {
        true => Err(Wrong { at: ports.span().start, what: format!("expected at most {most}") }),
        false => Ok(services),
    }
}

impl Test {
    /// Refuses a policy that does not do what the test expects.
    fn passes(&self, policy: &Policy) -> Result<()> {
        let name = |it: &Spanned<String>| {
            it.get_ref().parse::<Name>().map_err(|_| wrong(it, "the name of a node"))
        };
        let (from, to) = (name(&self.from)?, name(&self.to)?);
        let port = self.port.get_ref().parse::<Service>().ok();
        let port = port.filter(|it| it.protocol == Protocol::Icmp || it.ports.0 == it.ports.1);
        let port = port.ok_or_else(|| wrong(&self.port, "one port, \"tcp/22\", or \"icmp\""))?;
        let is_wanted = match self.expect.get_ref().as_str() {
            "allow" => true,
            "deny" => false,
            _ => return Err(wrong(&self.expect, "\"allow\" or \"deny\"")),
        };
        let permits = policy.permits(&from, &to);
        let by = permits.by(false, port.protocol, port.ports.0);
        let told = match (is_wanted, by) {
            (true, None) => format!("allowed: no line lets {from} begin it"),
            (false, Some(line)) => format!("denied: a line allows it, {}", line.text),
            _ => return Ok(()),
        };
        let what = format!("the test fails: expected {from} -> {to} {port} to be {told}");
        Err(Wrong { at: self.expect.span().start, what })
    }
}

/// The tables as text: what a configuration has is kept, and printed, in the same form as a file of its own.
fn text(groups: &Groups, allow: &[Allow], tests: &[Test]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let list = |words: &[Spanned<String>]| {
        let words: Vec<String> = words.iter().map(|word| quoted(word.get_ref())).collect();
        format!("[{}]", words.join(", "))
    };
    let mut out = String::from("[groups]\n");
    // Nothing refuses to be written to a text.
    for (group, members) in groups {
        let _ = writeln!(out, "{} = {}", quoted(group), list(members));
    }
    for Allow { between, from, to, ports } in allow {
        out += "\n[[allow]]\n";
        for (key, words) in [("between", between), ("from", from), ("to", to), ("ports", ports)] {
            if let Some(words) = words {
                let _ = writeln!(out, "{key} = {}", list(words.get_ref()));
            }
        }
    }
    for Test { from, to, port, expect } in tests {
        out += "\n[[test]]\n";
        for (key, word) in [("from", from), ("to", to), ("port", port), ("expect", expect)] {
            let _ = writeln!(out, "{key} = {}", quoted(word.get_ref()));
        }
    }
    out
}

/// Names the lines and groups that differ between a policy and the next, for the log.
pub(crate) fn difference(before: &Policy, after: &Policy) -> String {
    /// Lines that are named.
    const NAMED: usize = 8;
    let lacks = |policy: &Policy, line: &Line| !policy.lines.contains(line);
    let new = after.lines.iter().filter(|it| lacks(before, it)).map(|it| format!("new {it}"));
    let gone = before.lines.iter().filter(|it| lacks(after, it)).map(|it| format!("gone {it}"));
    let groups: BTreeSet<&String> = before.groups.keys().chain(after.groups.keys()).collect();
    let groups = groups.into_iter().filter(|it| before.groups.get(*it) != after.groups.get(*it));
    let all: Vec<String> = new.chain(gone).chain(groups.map(|it| format!("group {it}"))).collect();
    match all.len().checked_sub(NAMED) {
        _ if all.is_empty() => "what is allowed is the same".to_owned(),
        None | Some(0) => all.join("; "),
        Some(more) => format!("{}; {more} more", all[..NAMED].join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "version = 3\n# ours\n[groups]\nmobile = [\"laptop\", \"phone\"]\n\n[[allow]]\n\
        from = [\"mobile\"]\nto = [\"nas\"]\nports = [\"tcp/22\", \"icmp\"]\n\n[[test]]\n\
        from = \"phone\"\nto = \"nas\"\nport = \"tcp/22\"\nexpect = \"allow\"\n";

    fn refused(text: &str) -> String {
        Written::read(text).unwrap_err().placed("p.toml", text)
    }

    #[test]
    fn a_policy_is_kept_as_it_was_written_but_for_its_version() {
        let written = Written::read(GOOD).unwrap();
        assert_eq!((written.version, written.policy.lines.len()), (Some(3), 1));
        assert_eq!(format!("version = 3\n{}", written.text), GOOD);
        let again = Written::read(&written.text).unwrap();
        assert_eq!((again.version, again.policy), (None, written.policy));
    }

    #[test]
    fn a_test_that_fails_refuses_the_policy_with_its_line() {
        let denied = GOOD.replace("\"allow\"\n", "\"deny\"\n");
        assert_eq!(
            refused(&denied),
            "p.toml:15:10: the test fails: expected phone -> nas tcp/22 to be denied: a line allows it, \
             mobile -> nas tcp/22 icmp"
        );
        let other = GOOD.replace("port = \"tcp/22\"", "port = \"tcp/23\"");
        let what = "expected phone -> nas tcp/23 to be allowed: no line lets phone begin it";
        assert_eq!(refused(&other), format!("p.toml:15:10: the test fails: {what}"));
    }

    #[test]
    fn what_is_refused_is_refused_with_its_place() {
        let with = |from: &str, to: &str| refused(&GOOD.replace(from, to));
        let port = "expected \"tcp/22\", \"udp/8000-8010\", \"tcp\", \"udp\" or \"icmp\"";
        assert_eq!(
            with("[\"tcp/22\",", "[\"ssh\","),
            format!("p.toml:9:10: {port}, found \"ssh\"")
        );
        assert_eq!(
            with("to = [\"nas\"]", "to = [\"n s\"]"),
            "p.toml:8:7: expected a group or the name of a node, found \"n s\""
        );
        assert_eq!(
            with("to = [\"nas\"]\n", ""),
            "p.toml:7:8: expected between = [A, B], or from = [A, …] and to = [B, …]"
        );
        assert!(with("\"icmp\"]", "\"icmp\"]\ncolour = 1").contains("unknown field `colour`"));
        assert!(
            with("[\"tcp/22\", \"icmp\"]", "[]").starts_with("p.toml:9:9: expected at least one")
        );
        assert!(
            with("port = \"tcp/22\"", "port = \"tcp\"").starts_with("p.toml:14:8: expected one")
        );
        let lines = "[[allow]]\nfrom = [\"a\"]\nto = [\"b\"]\nports = [\"tcp/1\"]\n".repeat(33);
        assert!(refused(&lines).ends_with("too many concern a and b"), "{}", refused(&lines));
    }

    #[test]
    fn what_a_configuration_has_is_the_same_as_a_file() {
        let File { groups, allow, test, .. } = toml::from_str(GOOD).unwrap();
        let written = Written::of_tables(&groups, &allow, &test).unwrap();
        assert_eq!(Written::read(&written.text).unwrap().policy, written.policy);
        let mut fewer = written.policy.clone();
        fewer.lines.clear();
        fewer.groups.clear();
        let told = difference(&fewer, &written.policy);
        assert_eq!(told, "new mobile -> nas tcp/22 icmp; group mobile");
    }
}
