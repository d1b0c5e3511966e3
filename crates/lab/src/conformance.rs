//! Writes `docs/conformance.md`: what agrees with the kernel, from a campaign's [`Summary`] and the
//! registry of extensions.

use std::collections::BTreeSet;
use std::fmt::Write;

use rules::ext::{Families, MATCHES, Support, TARGETS};
use rules::model::Family;

use crate::generate::{matches, targets};
use crate::real::RealFile;
use crate::scene::{Placement, Wire};
use crate::summary::Summary;

/// What was asked, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// What the rules were loaded with.
    pub tool: String,
    /// Date, `YYYY-MM-DD`.
    pub date: String,
    /// First seed of the campaign.
    pub seed: u64,
}

/// The page as Markdown.
#[must_use]
pub fn page(summary: &Summary, files: &[RealFile], machine: &Machine) -> String {
    let mut text = head(summary, machine);
    if !files.is_empty() {
        real(&mut text, files);
    }
    text.push_str("\n## Matches\n\n");
    text.push_str(TABLE);
    for name in names(MATCHES.iter().map(|kind| kind.name)) {
        let kinds = MATCHES.iter().filter(|kind| kind.name == name);
        let kinds: Vec<_> = kinds.map(|kind| (kind.families, kind.support)).collect();
        let reason = matches::SILENT.iter().find(|(silent, _)| *silent == name);
        let counts = |family: Family| {
            let key = format!("{} {name}", family.name());
            summary.matches.get(&key).map_or(0, |asked| asked.asked)
        };
        row(&mut text, summary, "-m", name, &kinds, reason.map(|(_, why)| *why), counts);
    }
    text.push_str("\n## Targets\n\nPackets are those that reached the target.\n\n");
    text.push_str(TABLE);
    for name in names(TARGETS.iter().map(|kind| kind.name)) {
        let kinds = TARGETS.iter().filter(|kind| kind.name == name);
        let kinds: Vec<_> = kinds.map(|kind| (kind.families, kind.support)).collect();
        let reason = targets::SILENT.iter().find(|(silent, _)| *silent == name);
        let counts = |family: Family| {
            summary.targets.get(&format!("{} {name}", family.name())).copied().unwrap_or(0)
        };
        row(&mut text, summary, "-j", name, &kinds, reason.map(|(_, why)| *why), counts);
    }
    text
}

const TABLE: &str = "| extension | parses | prints | evaluates | IPv4 packets | IPv6 packets | differences |\n\
    |---|---|---|---|---:|---:|---:|\n";

fn head(summary: &Summary, machine: &Machine) -> String {
    let Machine { kernel, tool, date, seed } = machine;
    let mut text = format!(
        "# What agrees with the kernel\n\n\
         Written by `make oracle`; not by hand. Random rulesets and packets made for them were given to \
         the kernel and to tamis: every packet's verdict, mark and forwarded bytes, and every rule's and \
         policy's counters, must be the same.\n\n\
         Linux {kernel}, {tool}, {date}, seed {seed}.\n\n\
         | family | wire | chain | rulesets | packets | dropped before the rules | differences |\n\
         |---|---|---|---:|---:|---:|---:|\n"
    );
    for (words, compared) in &summary.scenes {
        let Some(scene) = crate::scene::Scene::parse(words) else { continue };
        let wire = match scene.wire {
            Wire::Tun => "TUN",
            Wire::Tap => "TAP",
            Wire::Veth => "veth",
        };
        let chain = match scene.placement {
            Placement::Raw => "raw PREROUTING",
            Placement::Forward => "mangle and filter FORWARD",
        };
        let _ = writeln!(
            text,
            "| {} | {wire} | {chain} | {} | {} | {} | |",
            scene.family.tool(),
            compared.rulesets,
            compared.packets,
            compared.stack
        );
    }
    let all: u64 = summary.scenes.values().map(|compared| compared.packets).sum();
    let rulesets: u64 = summary.scenes.values().map(|compared| compared.rulesets).sum();
    let _ = writeln!(text, "| all | | | {rulesets} | {all} | | {} |", summary.failures);
    text
}

/// The rulesets of the wild.
fn real(text: &mut String, files: &[RealFile]) {
    text.push_str(
        "\n## Rulesets of the wild\n\n\
         Each built-in chain outside nat stood in at FORWARD, between devices named after interfaces that \
         the rules name. Rules that depend on state, on time or on the host were left out, and those that no \
         such chain leads to. Packets were made for the rules that stayed.\n\n\
         | file | rules kept | of them hit | left out | not led to | packets | differences |\n\
         |---|---:|---:|---|---:|---:|---:|\n",
    );
    for file in files {
        let RealFile { name, kept, hit, unreached, left_out, packets, failures } = file;
        let left: Vec<String> =
            left_out.iter().map(|(why, count)| format!("{count} `{why}`")).collect();
        let (left, failures) = (left.join(", "), failures.len());
        let _ = writeln!(
            text,
            "| {name} | {kept} | {hit} | {left} | {unreached} | {packets} | {failures} |"
        );
    }
}

fn names(all: impl Iterator<Item = &'static str>) -> BTreeSet<&'static str> {
    all.collect()
}

fn row(
    text: &mut String,
    summary: &Summary,
    option: &str,
    name: &str,
    kinds: &[(Families, Support)],
    reason: Option<&str>,
    counts: impl Fn(Family) -> u64,
) {
    let evaluated = kinds.iter().any(|(_, support)| *support == Support::Evaluated);
    let cell = |family: Family| {
        let own = kinds.iter().find(|(families, _)| families.contains(&family));
        match own {
            None => String::new(),
            Some((_, Support::Parsed)) => "-".to_owned(),
            Some(_) => counts(family).to_string(),
        }
    };
    let differences: u64 = [Family::Ipv4, Family::Ipv6]
        .iter()
        .filter_map(|family| summary.differences.get(&format!("{} {name}", family.name())))
        .sum();
    let compared: u64 = [Family::Ipv4, Family::Ipv6].into_iter().map(&counts).sum();
    let last = match (evaluated, reason) {
        (true, None) if compared == 0 => "no packet reached it".to_owned(),
        (_, Some(why)) => format!("the kernel cannot say here: {why}"),
        (false, None) => "-".to_owned(),
        (true, None) => differences.to_string(),
    };
    let _ = writeln!(
        text,
        "| `{option} {name}` | yes | yes | {} | {} | {} | {last} |",
        if evaluated { "yes" } else { "no: unknown" },
        cell(Family::Ipv4),
        cell(Family::Ipv6)
    );
}

/// A day since the Unix epoch as `YYYY-MM-DD`.
#[must_use]
pub fn date_of(seconds: u64) -> String {
    // Howard Hinnant's days-to-civil algorithm, years counted from March.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_from_the_epoch() {
        assert_eq!(date_of(0), "1970-01-01");
        assert_eq!(date_of(951_782_400), "2000-02-29");
        assert_eq!(date_of(4_102_444_799), "2099-12-31");
    }

    #[test]
    fn the_page_names_every_extension() {
        let machine = Machine {
            kernel: "6.1".into(),
            tool: "iptables".into(),
            date: "2000-01-01".into(),
            seed: 1,
        };
        let page = page(&Summary::default(), &[], &machine);
        for kind in MATCHES {
            assert!(page.contains(&format!("`-m {}`", kind.name)), "{}", kind.name);
        }
    }
}
