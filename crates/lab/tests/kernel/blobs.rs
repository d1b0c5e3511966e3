//! Tables as the kernel gives them, read as rules and written from rules, byte for byte. Needs root and the legacy tools;
//! without them it says so and passes.

use std::io;
use std::process::Command;

use lab::oracle::counters::Reader;
use lab::oracle::load::lacking;
use lab::oracle::netns::{feed, in_fresh};
use lab::studies::blob::{self, Blob, Width};
use rules::model::{Family, Ruleset};
use rules::save::{self, LoadOptions, print_ruleset};

const V4: &str = include_str!("../../src/studies/blob/rules.v4");
const V6: &str = include_str!("../../src/studies/blob/rules.v6");
const ARP: &str = include_str!("../../src/studies/blob/rules.arp");
/// A mask that is no prefix: iptables 1.8.9 gives the kernel all bits in its place.
const NO_PREFIX: [&str; 2] = ["--ctorigdst 10.0.0.0/255.0.0.255", "--ctorigdst 10.0.0.0"];

fn loaded(family: Family, text: &str) -> Ruleset {
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    save::load(text, &options).expect("rules").ruleset
}

fn text(ruleset: &Ruleset) -> String {
    print_ruleset(ruleset, true, |table, chain, rule| ruleset.counters(table, chain, rule))
}

fn written(ruleset: &Ruleset, width: Width) -> Vec<Blob> {
    blob::write(ruleset, width).expect("what is translated")
}

/// Loads rules with their counters, and loads what is listed then: the kernel's tables, and what its own command lists.
/// The second time settles bytes that the kernel does not read: of `--ctreplsrc 1.2.3.4/32` the mask of an IPv6 address
/// ends in zeros, of `--ctreplsrc 1.2.3.4`, as it is listed, in ones.
fn of_kernel(
    family: Family,
    width: Width,
    rules: &str,
    tables: &[&str],
) -> io::Result<(Vec<Blob>, String)> {
    let tool = if family == Family::Ipv6 { "ip6tables-legacy" } else { "iptables-legacy" };
    in_fresh(|| {
        feed(Command::new(format!("{tool}-restore")).arg("-c"), rules)?;
        let listed = Command::new(format!("{tool}-save")).arg("-c").output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        feed(Command::new(format!("{tool}-restore")).arg("-c"), &listed)?;
        let mut reader = Reader::open(family)?;
        let blobs =
            tables.iter().map(|table| reader.blob(table, width)).collect::<io::Result<_>>()?;
        Ok((blobs, listed))
    })
}

/// Lines in the order of their letters: iptables-save lists tables in another.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Takes out what the kernel counts with in `-m limit` (`credit_cap`, `cost`): programs of 64 bits are not told, those
/// of 32 are.
fn without_credit(mut blob: Blob) -> Blob {
    const NAME: &[u8] = b"limit\0";
    let found = blob.entries.windows(NAME.len()).enumerate().filter(|(_, name)| *name == NAME);
    let found: Vec<_> = found.map(|(at, _)| at - 2).collect();
    found.iter().for_each(|at| blob.entries[at + 32 + 8..at + 32 + 28].fill(0));
    blob
}

/// Gives arptables a text line by line: its restore command makes no chains.
fn load_arp(rules: &str) -> io::Result<()> {
    for line in rules.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let arguments = match words[..] {
            [chain, "-"] => vec!["-N", chain.trim_start_matches(':')],
            [chain, policy] if chain.starts_with(':') => {
                vec!["-P", chain.trim_start_matches(':'), policy]
            }
            ["-A", ..] => words,
            _ => continue,
        };
        feed(Command::new("arptables-legacy").args(arguments), "")?;
    }
    Ok(())
}

/// Holds both directions to the kernel, of ARP: what an entry does not look at is said with a mask of 0.
fn hold_arp(width: Width) -> io::Result<()> {
    let theirs = in_fresh(|| {
        load_arp(ARP)?;
        Reader::open(Family::Arp)?.blob("filter", width)
    })?;
    let read = blob::read(&theirs).expect("a table");
    let looks_at_neither = [" --h-length 0/0", " --h-type 0x0/0x0"];
    let said = looks_at_neither.iter().fold(text(&read), |said, mask| said.replace(mask, ""));
    // Length and type that the text of arptables-nft does not say are Ethernet's.
    let given = ARP.replace(" --h-length 6", "").replace(" --h-type 1", "");
    assert_eq!(lines(&said), lines(&text(&loaded(Family::Arp, &given))));
    let again = &written(&read, width)[0];
    assert_eq!(first_difference(again, &theirs), None);
    assert_eq!(*again, theirs);
    Ok(())
}

/// Holds both directions to the kernel.
fn hold(family: Family, width: Width, rules: &str) -> usize {
    let ours = loaded(family, rules);
    let names: Vec<_> = ours.tables.iter().map(|table| &*table.name).collect();
    let (theirs, listed) = of_kernel(family, width, rules, &names).expect("the kernel's tables");
    let read: Vec<_> = theirs.iter().map(|one| blob::read(one).expect("a table")).collect();
    let said: String = read.iter().map(text).collect();
    assert_eq!(said, text(&ours).replace(NO_PREFIX[0], NO_PREFIX[1]), "what was given to it");
    assert_eq!(lines(&said), lines(&text(&loaded(family, &listed))), "what its command lists");
    let again: Vec<_> = read.iter().flat_map(|one| written(one, width)).collect();
    let theirs: Vec<_> = theirs.into_iter().map(without_credit).collect();
    for (ours, theirs) in again.iter().zip(&theirs) {
        assert_eq!(first_difference(ours, theirs), None, "{}", ours.table);
        assert_eq!(ours, theirs);
    }
    assert_eq!(again.len(), theirs.len());
    theirs.iter().map(|table| table.entries.len()).sum()
}

/// The first byte in which entries differ, with its neighbours.
fn first_difference(ours: &Blob, theirs: &Blob) -> Option<String> {
    let at = ours.entries.iter().zip(&theirs.entries).position(|(one, other)| one != other)?;
    let near =
        |blob: &Blob| format!("{:02x?}", &blob.entries[at..(at + 8).min(blob.entries.len())]);
    Some(format!("at {at}: {} and {}", near(ours), near(theirs)))
}

#[test]
fn tables_of_the_kernel_are_read_and_written_byte_for_byte() {
    if let Some(missing) = lacking() {
        eprintln!("SKIPPED: {missing}");
        return;
    }
    for (family, rules) in [(Family::Ipv4, V4), (Family::Ipv6, V6)] {
        let bytes = hold(family, Width::Bits64, rules);
        assert!(bytes > 5_000, "{bytes} bytes");
    }
}

#[test]
fn tables_of_arp_are_read_and_written_byte_for_byte() {
    let lacks = |why: io::Error| why.kind() == io::ErrorKind::NotFound;
    let is_there = Command::new("arptables-legacy").arg("--version").output();
    if lacking().is_some() || is_there.is_err_and(lacks) {
        eprintln!("SKIPPED: no root, or no arptables-legacy");
        return;
    }
    hold_arp(Width::Bits64).expect("a namespace");
    if let Err(why) = hold_arp(Width::Bits32) {
        eprintln!("SKIPPED: programs of 32 bits: {why}");
    }
}

/// The kernel gives them so to a program of 32 bits.
#[test]
#[cfg(target_arch = "x86_64")]
fn tables_of_programs_of_32_bits_are_read_and_written_byte_for_byte() {
    if let Some(missing) = lacking() {
        eprintln!("SKIPPED: {missing}");
        return;
    }
    let asked = of_kernel(Family::Ipv4, Width::Bits32, "*raw\nCOMMIT\n", &["raw"]);
    if let Err(why) = asked {
        eprintln!("SKIPPED: this kernel runs no programs of 32 bits: {why}");
        return;
    }
    for (family, rules) in [(Family::Ipv4, V4), (Family::Ipv6, V6)] {
        let [wide, narrow] = [Width::Bits64, Width::Bits32].map(|width| hold(family, width, rules));
        assert!(narrow < wide, "{narrow} bytes of {wide}");
    }
}
