//! Rule lines of nftables' tests/py: each is read, and printed as nft prints it.

use std::collections::BTreeMap;

use nft::model::{Family, Ruleset, Table};
use nft::text::Printer;
use nft::types::Style;

use crate::{data, page_says, show};

/// Spaces and the order in sets, which nft's own tests do not compare either.
fn canonical(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let Some(end) = rest[start..].find('}').map(|end| start + end) else { break };
        out.push_str(rest[..start].trim_end());
        let mut parts: Vec<String> = rest[start + 1..end]
            .split(',')
            .map(|part| part.split_whitespace().collect::<String>())
            .collect();
        parts.sort();
        out.push_str(&format!(" {{{}}}", parts.join(",")));
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Context {
    family: Family,
    around: Ruleset,
}

/// Makes the tables of a file's `*family;table;chains` lines, with its sets and objects.
fn contexts(text: &str, only: &[Family]) -> Vec<Context> {
    let families =
        text.lines().filter_map(|line| Family::find(line.strip_prefix('*')?.split(';').next()?));
    let families = families.filter(|family| only.contains(family));
    families.map(|family| context(family, text)).collect()
}

fn context(family: Family, text: &str) -> Context {
    let mut script = format!("table {} t {{\n", family.name());
    for line in text.lines() {
        let mut parts = line.splitn(2, ';');
        let (head, verdict) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        if let Some(set) = head.strip_prefix('!')
            && verdict.starts_with("ok")
            && let Some((name, types)) = set.split_once(' ')
        {
            let kind = if types.contains(':') { "map" } else { "set" };
            let body = types.replace(" flags ", "; flags ").replace(" timeout ", "; timeout ");
            script.push_str(&format!("{kind} {name} {{ {body}; }}\n"));
        }
    }
    script.push('}');
    let around = nft::text::parse("sets", &script, &crate::no_files).unwrap_or_else(|_| {
        let mut bare = Ruleset::default();
        bare.tables.push(Table::new(family, "t"));
        bare
    });
    Context { family, around }
}

#[test]
fn lines_of_nftables() {
    let Some(data) = data() else { return };
    let mut total = (0usize, 0usize, 0usize);
    let mut failing: BTreeMap<String, usize> = BTreeMap::new();
    for (folder, families) in [
        ("any", &[Family::Ip, Family::Ip6, Family::Inet][..]),
        ("ip", &[Family::Ip, Family::Inet]),
        ("ip6", &[Family::Ip6, Family::Inet]),
        ("inet", &[Family::Ip, Family::Ip6, Family::Inet]),
    ] {
        for file in crate::files(&data.join("nftables/tests/py").join(folder), ".t") {
            let text = std::fs::read_to_string(&file).expect("text");
            let name = format!("{folder}/{}", file.file_stem().expect("a name").to_string_lossy());
            for context in contexts(&text, families) {
                for line in text.lines() {
                    let Some(known) = line_holds(line, &context, &name, &mut total.2) else {
                        continue;
                    };
                    total.0 += 1;
                    total.1 += usize::from(known);
                    if !known {
                        *failing.entry(name.clone()).or_default() += 1;
                    }
                }
            }
        }
    }
    page_says(&format!(
        "| lines of tests/py, ip, ip6, inet | {} | {} print as nft prints them |",
        total.0, total.1
    ));
    let failing: Vec<String> =
        failing.iter().map(|(name, count)| format!("{name} {count}")).collect();
    page_says(&format!("Files with lines that differ: {}.", failing.join(", ")));
}

/// Says whether a line prints as nft prints it; `None` of lines that are no good rules.
fn line_holds(line: &str, context: &Context, name: &str, fails: &mut usize) -> Option<bool> {
    if line.is_empty() || line.starts_with(['#', '*', ':', '!', '?', '%', '-']) {
        return None;
    }
    let mut parts = line.split(';');
    let rule = parts.next()?;
    let verdict = parts.next()?.trim();
    let printer = || Printer {
        style: Style { numeric_proto: true, numeric: false },
        family: context.family,
        stateless: true,
        ..Printer::default()
    };
    let read = nft::text::parse_rule(context.family, rule, context.around.clone());
    if verdict != "ok" {
        *fails += usize::from(read.is_err());
        return None;
    }
    let wanted = parts.next().filter(|text| !text.trim().is_empty()).unwrap_or(rule);
    match read {
        Ok(read) => {
            let printed = nft::text::print::rule(&read, printer());
            let holds = canonical(&printed) == canonical(wanted);
            if !holds {
                show(|| {
                    format!(
                        "LINE {name} {}: {rule}\n  printed {printed}\n  wanted  {wanted}",
                        context.family.name()
                    )
                });
            }
            Some(holds)
        }
        Err(error) => {
            show(|| format!("READ {name} {}: {rule}\n  {error}", context.family.name()));
            Some(false)
        }
    }
}
