//! The kernel's own round trip: each ruleset of the shared test data goes into a network namespace by
//! `iptables-legacy-restore` and comes back by `iptables-legacy-save`; rule by rule the text must be what
//! tamis prints for the same file. docs/rule-dialects.md lists the deviations that are expected here.
//!
//! Needs root, the legacy tools and ip(8); without them, or without the data, it says so and passes. Every
//! namespace is removed again, also when the test fails.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rules::ext::{find_match, find_target};
use rules::model::{Action, Family, Rule, Ruleset};
use rules::save::{LoadOptions, load, print_rule, print_ruleset};

/// Files that tamis refuses and why; the restore tool refuses them as well.
const REFUSED: &[(&str, &str)] = &[
    ("openwrt-AA.save", "starts with a shell prompt"),
    ("isabelle-parser-test-v4.save", "names an option that no tool has"),
];

/// Files that tamis takes and the restore tool refuses: what tamis prints must go in instead.
const LENIENT: &[(&str, &str)] = &[
    ("ugent.save", "`-d ! x`, as tools before 1.4.3 wrote it"),
    ("veroneau.save", "a blank after COMMIT"),
];

/// What stands in one table and chain: `table CHAIN` to rule lines.
type Chains = BTreeMap<String, Vec<String>>;

/// A network namespace of this test's own, removed when dropped.
struct Namespace(String);

impl Namespace {
    fn new(number: usize) -> Result<Self, String> {
        let name = format!("tamis-save-{}-{number}", std::process::id());
        run("ip", &["netns", "add", &name], "").map(|_| Self(name))
    }

    /// Loads save text; the tool's complaint when it refuses.
    fn restore(&self, family: Family, text: &str) -> Result<(), String> {
        let tool = format!("{}-legacy-restore", family.tool());
        run("ip", &["netns", "exec", &self.0, &tool], text).map(drop)
    }

    fn save(&self, family: Family) -> Result<Chains, String> {
        let tool = format!("{}-legacy-save", family.tool());
        run("ip", &["netns", "exec", &self.0, &tool], "").map(|text| saved_chains(&text))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = run("ip", &["netns", "del", &self.0], "") {
            eprintln!("namespace {} is left behind: {error}", self.0);
        }
    }
}

/// The output of a command that takes `input`, or what it said when it failed.
fn run(command: &str, args: &[&str], input: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{command}: {error}");
    let mut child = Command::new(command)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A tool that refuses early does not read on: its status tells.
        let _ = stdin.write_all(input.as_bytes());
    }
    let Output { status, stdout, stderr } = child.wait_with_output().map_err(failed)?;
    if !status.success() {
        return Err(String::from_utf8_lossy(&stderr).trim().replace('\n', " / "));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Why the test cannot run here, if it cannot.
fn obstacle() -> Option<String> {
    for (tool, version) in [
        ("ip", "-V"),
        ("iptables-legacy-restore", "--version"),
        ("iptables-legacy-save", "--version"),
        ("ip6tables-legacy-restore", "--version"),
        ("ip6tables-legacy-save", "--version"),
    ] {
        if let Err(error) = run(tool, &[version], "") {
            return Some(error);
        }
    }
    let probe = Namespace::new(0).and_then(|namespace| {
        namespace
            .restore(Family::Ipv4, "*filter\n-A INPUT -p tcp -m tcp --dport 1 -j DROP\nCOMMIT\n")
    });
    probe.err().map(|error| format!("no rules in a network namespace (root?): {error}"))
}

fn saved_chains(text: &str) -> Chains {
    let (mut chains, mut table) = (Chains::new(), "");
    for line in text.lines() {
        let mut words = line.split(' ');
        match (line.as_bytes().first(), words.next(), words.next()) {
            (Some(b'*'), ..) => table = &line[1..],
            (Some(b':'), Some(name), _) => {
                chains.entry(format!("{table} {}", &name[1..])).or_default();
            }
            (Some(b'-'), _, Some(name)) => {
                chains.entry(format!("{table} {name}")).or_default().push(line.to_owned());
            }
            _ => {}
        }
    }
    chains
}

/// The chains as tamis prints them, and the names of extensions that it keeps unread, by rule text.
fn printed_chains(rules: &Ruleset) -> (Chains, BTreeMap<String, String>) {
    let (mut chains, mut unread) = (Chains::new(), BTreeMap::new());
    for table in &rules.tables {
        for chain in &table.chains {
            let lines = chains.entry(format!("{} {}", table.name, chain.name)).or_default();
            for rule in &chain.rules {
                let text = print_rule(rules.family, table, chain, rule);
                if let Some(name) = unknown_extension(rule, rules.family) {
                    unread.insert(text.clone(), name);
                }
                lines.push(text);
            }
        }
    }
    (chains, unread)
}

fn unknown_extension(rule: &Rule, family: Family) -> Option<String> {
    let unknown = rule.matches.iter().find(|used| find_match(&used.name, family).is_none());
    let target = match &rule.action {
        Action::Target(used) if find_target(&used.name, family).is_none() => Some(&used.name),
        _ => None,
    };
    unknown.map(|used| &used.name).or(target).map(ToString::to_string)
}

/// Returns how the chains that the kernel holds differ from the printed ones.
fn differences(kernel: &Chains, rules: &Ruleset) -> Vec<String> {
    let (ours, unread) = printed_chains(rules);
    let none = Vec::new();
    let mut found = Vec::new();
    for name in kernel.keys().chain(ours.keys().filter(|name| !kernel.contains_key(*name))) {
        let theirs = kernel.get(name).unwrap_or(&none);
        let lines = ours.get(name).unwrap_or(&none);
        if theirs.len() != lines.len() {
            found.push(format!(
                "{name}: {} rules in the kernel, {} here",
                theirs.len(),
                lines.len()
            ));
        }
        for (line, theirs) in lines.iter().zip(theirs).filter(|(a, b)| a != b) {
            match unread.get(line) {
                Some(extension) => println!("{name}: {extension} is not read yet: {line}"),
                None => found.push(format!("{name}:\n    tamis {line}\n    tool  {theirs}")),
            }
        }
    }
    found
}

/// Puts a file through the kernel; what is wrong, if anything.
fn round_trip(name: &str, text: &str, number: usize) -> Result<(), String> {
    let loaded = match load(text, &LoadOptions::default()) {
        Ok(loaded) => loaded,
        Err(error) => return not_loaded(name, &error.to_string()),
    };
    let rules = loaded.ruleset;
    let namespace = Namespace::new(number)?;
    let lenient = LENIENT.iter().find(|(file, _)| *file == name);
    match (namespace.restore(rules.family, text), lenient) {
        (Ok(()), _) => {}
        (Err(_), Some((_, why))) => {
            println!("{name}: the tool refuses it ({why}); what tamis prints goes in instead");
            let ours = print_ruleset(&rules, true, |_, _, _| Default::default());
            namespace.restore(rules.family, &ours)?;
        }
        (Err(error), None) => return Err(format!("the tool refuses it: {error}")),
    }
    let found = differences(&namespace.save(rules.family)?, &rules);
    if found.is_empty() {
        println!("{name}: {} rules come back as they are printed", rules.rule_count());
        return Ok(());
    }
    Err(found.join("\n"))
}

fn not_loaded(name: &str, error: &str) -> Result<(), String> {
    if REFUSED.iter().any(|(file, _)| *file == name) {
        println!("{name}: not loaded: {error}");
        return Ok(());
    }
    Err(format!("not loaded: {error}"))
}

fn save_files() -> Option<Vec<PathBuf>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/rulesets");
    let Ok(entries) = std::fs::read_dir(&dir) else {
        eprintln!("SKIPPED: {} is not here", dir.display());
        return None;
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "save"));
    files.sort();
    Some(files)
}

#[test]
fn the_save_tool_prints_what_tamis_prints() {
    let Some(files) = save_files() else { return };
    if let Some(obstacle) = obstacle() {
        eprintln!("SKIPPED: the save tool cannot be asked: {obstacle}");
        return;
    }
    let mut wrong = Vec::new();
    for (number, path) in files.iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(path).unwrap();
        if let Err(what) = round_trip(&name, &text, number + 1) {
            wrong.push(format!("{name}: {what}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
