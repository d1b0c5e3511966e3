//! `--save-counters`: what it writes loads again, here and in the kernel, counter for counter.
//!
//! The kernel's half needs root, ip(8) and the legacy tools; without them it says so.

use std::fs;
use std::process::{Command, Stdio};

use crate::ran::{CAPTURE, Scratch, rules, skipped, tamis};

/// The rules after the demonstration's capture.
fn saved(scratch: &Scratch) -> String {
    let file = scratch.file("saved.v4");
    let ran = tamis(&["replay", &rules("stateless.v4"), CAPTURE, "--save-counters", &file]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    file
}

/// Rules and policies, in the order of their text: tables stand in another order in the kernel.
fn counted_lines(text: &str) -> Vec<String> {
    let counted = |line: &&str| line.starts_with(['[', ':']);
    let mut lines: Vec<String> = text.lines().filter(counted).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn saved_counters_are_those_of_the_report() {
    let scratch = Scratch::new("counters-report");
    let text = fs::read_to_string(saved(&scratch)).unwrap();
    let document = tamis(&["replay", "--json", &rules("stateless.v4"), CAPTURE]).json();
    let hits = document["hits"].as_array().unwrap();
    assert!(hits.iter().any(|rule| rule["packets"].as_u64() > Some(0)));
    for rule in hits {
        let line =
            format!("[{}:{}] {}", rule["packets"], rule["bytes"], rule["text"].as_str().unwrap());
        assert!(text.lines().any(|saved| saved == line), "no {line}\n{text}");
    }
    for policy in document["policies"].as_array().unwrap() {
        let part = |key: &str| policy[key].to_string().replace('"', "");
        let [chain, policy, packets, bytes] = ["chain", "policy", "packets", "bytes"].map(part);
        let line = format!(":{chain} {policy} [{packets}:{bytes}]");
        assert!(text.lines().any(|saved| saved == line), "no {line}\n{text}");
    }
}

#[test]
fn saved_counters_load_again() {
    let scratch = Scratch::new("counters-again");
    let first = saved(&scratch);
    let again = scratch.file("again.v4");
    let ran = tamis(&["replay", &first, CAPTURE, "--save-counters", &again, "--strict-input"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // The counters count one replay, not what the file had before.
    assert_eq!(fs::read_to_string(first).unwrap(), fs::read_to_string(again).unwrap());
}

/// A network namespace of this test's own, removed when dropped.
struct Namespace(String);

impl Namespace {
    fn new() -> Option<Self> {
        let name = format!("tamis-counters-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).stderr(Stdio::null()).status();
        made.is_ok_and(|status| status.success()).then(|| Self(name))
    }

    /// Runs a tool inside with a file on standard input.
    fn run(&self, tool: &str, input: &str) -> Result<String, String> {
        let input = fs::File::open(input).unwrap();
        let output = Command::new("ip")
            .args(["netns", "exec", &self.0, tool, "-c"])
            .stdin(input)
            .output()
            .map_err(|error| error.to_string())?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(message)
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn saved_counters_load_into_the_kernel() {
    let scratch = Scratch::new("counters-kernel");
    let Some(namespace) = Namespace::new() else {
        return skipped("saved counters in the kernel: no root, or no ip(8)");
    };
    let small = scratch.write("small.v4", "*filter\n-A INPUT -p udp -m udp --dport 1\nCOMMIT\n");
    if let Err(error) = namespace.run("iptables-legacy-restore", &small) {
        return skipped(&format!("saved counters in the kernel: {}", error.trim()));
    }
    let file = saved(&scratch);
    namespace.run("iptables-legacy-restore", &file).unwrap();
    let kernel = namespace.run("iptables-legacy-save", "/dev/null").unwrap();
    assert_eq!(counted_lines(&kernel), counted_lines(&fs::read_to_string(file).unwrap()));
}
