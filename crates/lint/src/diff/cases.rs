//! Regions as cases of `tamis test`: what the new rules do with the packets that show them.

use std::collections::BTreeSet;

use super::differences::{Difference, Differences};
use crate::flow::Fate;

impl Differences {
    /// A cases file, which the new rules pass and the old ones do not; `locals` are the host's own addresses, if they are
    /// given.
    #[must_use]
    pub fn cases(&self, locals: &[String]) -> String {
        let mut text = "# Packets that get another verdict, by `tamis diff`: what the new rules do with them.\n\
                        # `tamis test NEW FILE` passes, and with the old rules every case fails.\n"
            .to_owned();
        let cases: Vec<(&Difference, &str)> =
            self.regions.iter().filter_map(|region| Some((region, verdict(region)?))).collect();
        let by_options = |(region, _): &(&Difference, &str)| {
            region.given.iter().all(|option| option.starts_with("--local "))
        };
        let cases: Vec<(&Difference, &str)> = cases.into_iter().filter(by_options).collect();
        let left_out = self.regions.len() - cases.len();
        if left_out > 0 {
            text.push_str(&format!(
                "# Left out: {left_out} regions: a case does not say routes, nor how packets are translated, nor which of several verdicts.\n"
            ));
        }
        let mut own: BTreeSet<&str> = locals.iter().map(|local| &**local).collect();
        if locals.is_empty() {
            let given = cases.iter().flat_map(|(region, _)| &region.given);
            own.extend(given.filter_map(|option| option.strip_prefix("--local ")));
        }
        // What packets of a region have where nothing tells them apart.
        text.push_str(
            "\n[defaults]\noptions = \"none\"\npayload = \"none\"\nmac = \"02:00:00:00:00:01\"\n",
        );
        if !own.is_empty() {
            let own: Vec<String> = own.into_iter().map(quoted).collect();
            text.push_str(&format!("local = [{}]\n", own.join(", ")));
        }
        for (region, verdict) in cases {
            let Difference { place, fates: [from, to], piece, witness, .. } = region;
            let name = quoted(&format!("{place}: {from} -> {to}: {piece}"));
            let packet = quoted(witness);
            text.push_str(&format!(
                "\n[[case]]\nname = {name}\npacket = {packet}\nexpect = \"{verdict}\"\n"
            ));
        }
        text
    }
}

/// The verdict that the new rules give, where the old ones give another.
fn verdict(region: &Difference) -> Option<&'static str> {
    let [from, to] = [0, 1].map(|side: usize| match &region.fates[side] {
        Fate::Accept | Fate::Translate(_) => Some("accept"),
        Fate::Drop => Some("drop"),
        Fate::Reject(_) => Some("reject"),
        Fate::Open(_) | Fate::OneOf(_) => None,
    });
    to.filter(|_| from != to)
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
