//! Whose packets were dropped, as bars: their sources, their destinations and their destination ports.

use std::fmt::{Result, Write};

use super::markup::escape;
use crate::groups::{Group, GroupBy, GroupKey, Grouping};
use crate::report::Report;
use crate::report::text::{number, percent, plural};

/// Bars of each kind.
const BARS: usize = 10;
/// The kinds of [`GroupBy::ON_PAGE`], in words for several.
const SEVERAL: [&str; 3] = ["sources", "destinations", "ports"];

impl Report {
    /// The sides of dropped and rejected packets.
    pub(super) fn write_dropped(&self, out: &mut String) -> Result {
        self.write_who(out, true)
    }

    /// The same of packets of the verdicts that were asked for, where they are others.
    pub(super) fn write_others(&self, out: &mut String) -> Result {
        self.write_who(out, false)
    }

    fn write_who(&self, out: &mut String, refused: bool) -> Result {
        let of_kind = |by| self.groups.iter().find(|grouping| grouping.by == by);
        let kinds = GroupBy::ON_PAGE.into_iter().zip(SEVERAL);
        let kinds = kinds.filter_map(|(by, several)| Some((of_kind(by)?, several)));
        let kinds: Vec<_> = kinds
            .filter(|(grouping, _)| grouping.listed > 0 && is_refused(grouping) == refused)
            .collect();
        let Some((first, _)) = kinds.first() else { return Ok(()) };
        let lists: Vec<&str> = first.lists.packets().collect();
        writeln!(
            out,
            "<p class=\"dim\">{} ({}), as captured, before any translation.</p>\n<div class=\"three\">",
            plural(first.listed, "packet"),
            lists.join(" or ")
        )?;
        // The colour of a verdict, where they have one.
        let class = match lists.as_slice() {
            [one @ ("accept" | "unknown" | "reject")] => one,
            _ if refused => "drop",
            _ => "skip",
        };
        for (grouping, several) in kinds {
            write_bars(out, grouping, [grouping.by.name(), several], class)?;
        }
        out.push_str("</div>\n");
        Ok(())
    }
}

/// Whether its packets are dropped or rejected ones.
fn is_refused(grouping: &Grouping) -> bool {
    grouping.lists.packets().all(|list| matches!(list, "drop" | "reject"))
}

fn write_bars(
    out: &mut String,
    grouping: &Grouping,
    [one, several]: [&str; 2],
    class: &str,
) -> Result {
    let all = grouping.groups.len();
    writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"who {one}\">\n<caption>{}</caption>\n\
         <thead><tr><th scope=\"col\">{one}<th scope=\"col\" class=\"n\">packets\
         <th scope=\"col\" class=\"n\">share<td class=\"w\"></thead>\n<tbody>",
        counted(all, one, several)
    )?;
    let most = grouping.groups.first().map_or(1, |group| group.listed.packets.max(1));
    for group in grouping.groups.iter().take(BARS) {
        write_bar(out, group, most, grouping.listed, class)?;
    }
    out.push_str("</table>\n");
    let mut rest = Vec::new();
    if all > BARS {
        rest.push(format!("and {} more", number((all - BARS) as u64)));
    }
    if grouping.left_out > 0 {
        rest.push(format!(
            "{} of {several} that were too many to keep",
            plural(grouping.left_out, "packet")
        ));
    }
    if !rest.is_empty() {
        writeln!(out, "<p class=\"dim\">{}</p>", rest.join("; "))?;
    }
    out.push_str("</div>\n");
    Ok(())
}

fn write_bar(out: &mut String, group: &Group, most: u64, listed: u64, class: &str) -> Result {
    let packets = group.listed.packets;
    let words = escape(&group.key.to_string());
    let named = match group.key {
        GroupKey::Address(_) => format!("<a href=\"#rules\" data-search=\"{words}\">{words}</a>"),
        _ => words,
    };
    writeln!(
        out,
        "<tr><th scope=\"row\"><code>{named}</code><td class=\"n\" data-v=\"{packets}\">{}\
         <td class=\"n\">{}<td class=\"w\"><span class=\"bar {class}\" style=\"width:{:.2}%\"></span>",
        number(packets),
        percent(packets as f64 / listed.max(1) as f64),
        100.0 * packets as f64 / most as f64
    )
}

fn counted(all: usize, one: &str, several: &str) -> String {
    format!("{} {}", number(all as u64), if all == 1 { one } else { several })
}
