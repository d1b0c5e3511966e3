//! [`Passed`]: what a line of a trace says that its packet passed, a rule or the end of a chain.
//!
//! `nft monitor trace` prints the rule and its verdict, `trace id 1 inet filter input rule tcp dport 22 accept (verdict
//! accept)`, and the policy of a base chain, `… policy drop`. The target TRACE of iptables logs the place of the rule,
//! `TRACE: filter:INPUT:rule:3`. Both tell of rules that match alone.
//!
//! Source: nftables `src/netlink.c`, `trace_print_rule`, `trace_print_policy`; `net/ipv4/netfilter/ip_tables.c`,
//! `trace_packet`.

use std::fmt;

/// What a packet passed, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Of nft with its family.
    pub(crate) table: String,
    pub(crate) chain: String,
    pub(crate) what: What,
}

/// What it passed there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A rule of nft by its text, or by its handle where nft has no text for it any more.
    Rule { text: String, handle: Option<u64>, verdict: String },
    /// A rule by its number in the chain, from 1; one past the last is the end of the chain.
    Number(u32),
    /// The policy of a base chain.
    Policy { drops: bool },
}

impl Passed {
    /// Reads a line of `nft monitor trace` that shows no packet: the id there, and what was passed.
    pub(crate) fn of_line(text: &str) -> Option<(String, Self)> {
        let mut rest = text.trim().strip_prefix("trace id ")?;
        let mut word = || {
            let (word, after) = rest.split_once(' ')?;
            rest = after;
            Some(word)
        };
        let (id, family, table, chain) = (word()?, word()?, word()?, word()?);
        let what = match rest.split_once(' ')? {
            ("rule", rule) => rule_of(rule)?,
            ("unknown", rule) => rule_of(rule.strip_prefix("rule ")?)?,
            ("policy", policy) => {
                What::Policy { drops: policy.split(' ').next().is_some_and(|word| word == "drop") }
            }
            _ => return None,
        };
        let table = format!("{family} {table}");
        Some((id.to_owned(), Self { table, chain: chain.to_owned(), what }))
    }

    /// Reads the place of a line of the target TRACE, `filter:INPUT:rule:3`.
    pub(crate) fn of_place(place: &str) -> Option<Self> {
        let mut words = place.split(':');
        let (table, chain) = (words.next()?.to_owned(), words.next()?.to_owned());
        let what = What::Number(words.nth(1)?.parse().ok()?);
        Some(Self { table, chain, what })
    }

    /// Bytes of it.
    pub(crate) fn size(&self) -> usize {
        let text = match &self.what {
            What::Rule { text, verdict, .. } => text.len() + verdict.len(),
            What::Number(_) | What::Policy { .. } => 0,
        };
        size_of::<Self>() + self.table.len() + self.chain.len() + text
    }

    /// Whether it lets the packet go on to the next base chain, as far as that is said.
    pub(crate) fn accepts(&self) -> bool {
        match &self.what {
            What::Rule { verdict, .. } => verdict == "accept",
            What::Policy { drops } => !drops,
            What::Number(_) => false,
        }
    }

    /// Whether it drops the packet.
    pub(crate) fn drops(&self) -> bool {
        match &self.what {
            What::Rule { verdict, .. } => verdict == "drop",
            What::Policy { drops } => *drops,
            What::Number(_) => false,
        }
    }
}

/// What stands after `rule`.
fn rule_of(rule: &str) -> Option<What> {
    let (text, verdict) = rule.rsplit_once(" (verdict ")?;
    let verdict = verdict.split(')').next().unwrap_or_default().to_owned();
    let handle = text.rsplit_once("handle ").and_then(|(before, handle)| {
        let is_one = before.is_empty() || before.ends_with("# ");
        handle.parse().ok().filter(|_| is_one)
    });
    let text = text.rsplit_once(" # handle ").map_or(text, |(text, _)| text).to_owned();
    Some(What::Rule { text, handle, verdict })
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, chain, what } = self;
        match what {
            What::Rule { text, verdict, .. } => {
                write!(f, "{table} {chain} {text} (verdict {verdict})")
            }
            What::Number(number) => write!(f, "rule {number} of {table}/{chain}"),
            What::Policy { drops } => {
                write!(f, "policy {} of {table} {chain}", if *drops { "drop" } else { "accept" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_rules_and_policies_are_read() {
        let rule = |text: &str, handle, verdict: &str| What::Rule {
            text: text.to_owned(),
            handle,
            verdict: verdict.to_owned(),
        };
        for (line, what) in [
            (
                "rule tcp dport 22 accept (verdict accept)",
                rule("tcp dport 22 accept", None, "accept"),
            ),
            ("rule jump a (verdict jump a)", rule("jump a", None, "jump a")),
            ("rule drop # handle 7 (verdict drop)", rule("drop", Some(7), "drop")),
            ("unknown rule handle 9 (verdict continue)", rule("handle 9", Some(9), "continue")),
            ("policy drop ", What::Policy { drops: true }),
            ("policy accept meta mark 0x1 ", What::Policy { drops: false }),
        ] {
            let (id, passed) = Passed::of_line(&format!("trace id 5d inet fw in {line}")).unwrap();
            assert_eq!((&*id, &*passed.table, &*passed.chain), ("5d", "inet fw", "in"));
            assert_eq!(passed.what, what, "{line}");
        }
        for line in ["trace id 5d inet fw in packet: iif \"lo\"", "trace id 5d inet", "trace", ""] {
            assert_eq!(Passed::of_line(line), None, "{line}");
        }
        let place = Passed::of_place("filter:INPUT:rule:3").unwrap();
        assert_eq!(
            (&*place.table, &*place.chain, place.what),
            ("filter", "INPUT", What::Number(3))
        );
        assert_eq!(Passed::of_place("filter:INPUT"), None);
    }
}
