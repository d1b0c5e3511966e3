//! Limits and quotas by name: rules that name one share its state, in family inet those for IPv4 and for IPv6 alike.

use super::limit::Limit;
use super::quota::Quota;
use rules::ext::{ListSort, ListUse, Match, Memory, NamedLists, Printer};
use rules::{Outcome, Transit};

/// What a name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A limit.
    Limit(Limit),
    /// A quota.
    Quota(Quota),
}

/// A use of a limit or a quota by its name.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// The name among all states of a host: with the table and the kind.
    pub name: Box<str>,
    pub kind: Kind,
    pub text: Box<str>,
    /// Packets ask it, too, of which it is not known.
    pub also_elsewhere: bool,
}

impl Named {
    /// A use of a state that nothing asks but what is evaluated.
    pub(crate) fn new(name: Box<str>, kind: Kind, text: &str) -> Self {
        Self { name, kind, text: text.into(), also_elsewhere: false }
    }
}

impl Match for Named {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(Box::new(Use { of: self.clone(), at: None }))
    }

    fn list(&self) -> Option<ListUse<'_>> {
        Some(ListUse { name: &self.name, sort: ListSort::State })
    }
}

/// A rule's place among the users of a state.
#[derive(Debug)]
struct Use {
    of: Named,
    at: Option<usize>,
}

impl Memory for Use {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, lists: &mut NamedLists) -> Outcome {
        if self.at.is_none() {
            self.join(lists);
        }
        let Some(at) = self.at else { return Outcome::MAYBE };
        let also = self.of.also_elsewhere;
        let outcome = match &self.of.kind {
            Kind::Limit(limit) => {
                lists.state(at, || limit.bucket(), |bucket| bucket.ask(transit, also))
            }
            Kind::Quota(quota) => lists.state(at, || quota.used(), |used| used.ask(transit, also)),
        };
        outcome.unwrap_or(Outcome::MAYBE)
    }

    fn join(&mut self, lists: &mut NamedLists) {
        self.at = Some(lists.join_state(&self.of.name));
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::lower::probe::{Frame, lowered};
    use rules::eval::{Alive, Memories, Nobody, Verdict, walk};
    use rules::model::{Family, Ruleset};

    /// The verdicts on packets to these ports, one after the other; nothing where a verdict is not known.
    fn verdicts(rules: &Ruleset, ports: &[u16]) -> Vec<Option<Verdict>> {
        let mut memories = Memories::of(rules);
        let mut verdict = |port: &u16| {
            Frame::syn(*port).see(|transit| {
                let walked = walk(rules, 0, transit, Alive::Certain, &mut memories, &mut Nobody);
                walked.only().map(|it| it.0)
            })
        };
        ports.iter().map(&mut verdict).collect()
    }

    #[test]
    fn rules_share_what_they_name() {
        let text = "table inet t {
            limit few { rate 2/minute burst 2 packets; }
            quota some { 100 bytes; }
            chain forward {
                type filter hook forward priority 0; policy drop;
                tcp dport 22 limit name \"few\" accept
                tcp dport 23 limit name \"few\" accept
                tcp dport 24 quota name \"some\" accept
                tcp dport 25 quota name \"some\" accept
            }
        }";
        let lowered = lowered(text, Family::Ipv4);
        assert!(lowered.unknown.is_empty(), "{:?}", lowered.unknown);
        let said = verdicts(&lowered.ruleset, &[22, 23, 22, 23, 24, 25, 24]);
        use Verdict::{Accept, Drop};
        let wanted = [Accept, Accept, Drop, Drop, Accept, Accept, Drop];
        assert_eq!(said, wanted.map(Some));
    }

    #[test]
    fn what_a_rule_asks_after_a_statement_is_not_known_elsewhere() {
        let text = "table ip t {
            limit few { rate 2/minute burst 2 packets; }
            quota some { 100 bytes; }
            chain forward {
                type filter hook forward priority 0; policy accept;
                tcp dport 22 limit name \"few\" drop
                tcp dport 24 quota name \"some\" drop
                tcp dport 26 meta mark set 1 limit name \"few\"
                tcp dport 27 meta mark set 1 quota name \"some\"
            }
        }";
        let lowered = lowered(text, Family::Ipv4);
        assert_eq!(lowered.unknown.len(), 2);
        // What is left is open, until these packets alone have used it up.
        let said = verdicts(&lowered.ruleset, &[22, 22, 24, 24, 24]);
        let wanted = [None, None, None, None, Some(Verdict::Accept)];
        assert_eq!(said, wanted);
    }
}
