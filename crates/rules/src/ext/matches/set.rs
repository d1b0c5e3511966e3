//! `-m set`: membership in an ipset.
//!
//! Rules are read without the sets: a set that does not exist makes the match unknown. Source:
//! iptables-extensions(8); kernel `net/netfilter/xt_set.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, Given, IP, Match, MatchKind, Memory, NamedLists, Opt, Printer, Support};
use crate::family::Family;
use crate::ipset::{CounterTest, Query, Sets, Touched};
use crate::outcome::Outcome;
use crate::predicate::Predicate;
use crate::transit::Transit;

const MAX_NAME: usize = 31;
const MAX_DIMENSIONS: usize = 6;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "set",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::pair("match-set").alias(&["set"]).invertible(),
        Opt::flag("return-nomatch"),
        Opt::flag("update-counters").invertible(),
        Opt::flag("update-subcounters").invertible(),
        Opt::value("packets-eq").invertible(),
        Opt::value("packets-lt"),
        Opt::value("packets-gt"),
        Opt::value("bytes-eq").invertible(),
        Opt::value("bytes-lt"),
        Opt::value("bytes-gt"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug, Clone)]
struct Set {
    name: Box<str>,
    /// For each dimension of the set: looked up by the packet's source, not its destination.
    by_source: Box<[bool]>,
    invert: bool,
    return_nomatch: bool,
    skip_counters: bool,
    skip_subcounters: bool,
    /// Tests of the element's own counters: of packets and of bytes.
    counters: [Option<Counter>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Counter {
    option: &'static str,
    invert: bool,
    value: u64,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("match-set")?;
    if given.text().is_empty() || given.text().len() > MAX_NAME {
        return Err(given.expected(format!("a set name of 1-{MAX_NAME} bytes")));
    }
    let inverted = |name| args.get(name).is_some_and(|given| given.invert);
    Ok(Box::new(Set {
        name: given.text().into(),
        by_source: parse_sides(given)?,
        invert: given.invert,
        return_nomatch: args.has("return-nomatch"),
        skip_counters: inverted("update-counters"),
        skip_subcounters: inverted("update-subcounters"),
        counters: [
            parse_counter(args, &["packets-eq", "packets-lt", "packets-gt"])?,
            parse_counter(args, &["bytes-eq", "bytes-lt", "bytes-gt"])?,
        ],
    }))
}

fn parse_sides(given: &Given<'_>) -> Result<Box<[bool]>, What> {
    let sides: Option<Vec<bool>> = given
        .second()
        .split(',')
        .map(|side| match side {
            "src" => Some(true),
            "dst" => Some(false),
            _ => None,
        })
        .collect();
    sides.filter(|sides| sides.len() <= MAX_DIMENSIONS).map(Into::into).ok_or_else(|| {
        given.second_expected(format!("a comma list of at most {MAX_DIMENSIONS} src or dst"))
    })
}

fn parse_counter(args: &Args<'_>, names: &[&str; 3]) -> Result<Option<Counter>, What> {
    args.one_of(names)?;
    let Some(given) = names.iter().find_map(|name| args.get(name)) else { return Ok(None) };
    let value = number::between(given, 0, u64::MAX)?;
    Ok(Some(Counter { option: given.name, invert: given.invert, value }))
}

impl Match for Set {
    fn print(&self, to: &mut Printer) {
        to.flag(self.invert, "match-set").plain(&self.name).word(sides_text(&self.by_source));
        if self.return_nomatch {
            to.flag(false, "return-nomatch");
        }
        if self.skip_counters {
            to.flag(true, "update-counters");
        }
        if self.skip_subcounters {
            to.flag(true, "update-subcounters");
        }
        for Counter { option, invert, value } in self.counters.iter().flatten() {
            to.option(*invert, option, value);
        }
    }

    /// What the walk found, whose counting is done.
    fn peek(&self, transit: &Transit<'_, '_>) -> Option<Outcome> {
        let found = transit.sets.as_ref().and_then(|sets| {
            sets.search(&self.name, &self.query(false), transit, &mut Touched::default())
        });
        Some(self.outcome(found))
    }

    fn predicate_in(&self, family: Family, sets: &Sets) -> Option<Predicate> {
        let is_plain = self.counters.iter().all(Option::is_none);
        let look = || sets.predicate(&self.name, &self.by_source, self.return_nomatch, family);
        is_plain.then(look)?.map(|all| all.inverted(self.invert))
    }

    fn asks_for_set(&self) -> bool {
        true
    }

    /// As long as nothing changes its set.
    fn repeats(&self) -> bool {
        self.counters.iter().all(Option::is_none)
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(Box::new(self.clone()))
    }

    fn sets(&self) -> Vec<&str> {
        vec![&self.name]
    }
}

/// The sets are the host's, and keep account of doubt themselves.
impl Memory for Set {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, _lists: &mut NamedLists) -> Outcome {
        let Some(sets) = transit.sets.take() else { return Outcome::MAYBE };
        let query = self.query(!self.skip_counters);
        let found = sets.ask(&self.name, &query, transit, &mut Touched::default());
        transit.sets = Some(sets);
        self.outcome(found)
    }

    fn couples_flows(&self, sets: Option<&Sets>) -> bool {
        sets.is_some_and(Sets::change_by_themselves)
    }

    fn is_one(&self) -> bool {
        false
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

impl Set {
    fn query(&self, counts: bool) -> Query<'_> {
        Query {
            by_source: &self.by_source,
            return_nomatch: self.return_nomatch,
            counts,
            counts_members: !self.skip_subcounters,
            tests: self.counters.map(|test| test.map_or(CounterTest::Any, Counter::test)),
        }
    }

    fn outcome(&self, found: Option<bool>) -> Outcome {
        found.map_or(Outcome::MAYBE, |found| Outcome::from_bool(found != self.invert))
    }
}

impl Counter {
    fn test(self) -> CounterTest {
        match (self.option.rsplit('-').next(), self.invert) {
            (Some("lt"), _) => CounterTest::Less(self.value),
            (Some("gt"), _) => CounterTest::More(self.value),
            (_, true) => CounterTest::NotEqual(self.value),
            (_, false) => CounterTest::Equal(self.value),
        }
    }
}

/// `src` and `dst` for each dimension.
pub(crate) fn sides_text(by_source: &[bool]) -> String {
    let sides: Vec<&str> =
        by_source.iter().map(|source| if *source { "src" } else { "dst" }).collect();
    sides.join(",")
}

#[cfg(test)]
mod tests {
    use crate::save::{LoadOptions, load, print_rule};

    fn reprint(rule: &str) -> Option<String> {
        let text = format!("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT {rule}\nCOMMIT\n");
        let ruleset = load(&text, &LoadOptions::default()).ok()?.ruleset;
        let (table, chain) = (&ruleset.tables[0], &ruleset.tables[0].chains[0]);
        Some(print_rule(ruleset.family, table, chain, &chain.rules[0])[9..].to_owned())
    }

    #[test]
    fn options_print_in_the_tool_s_order() {
        let rule = "-m set ! --match-set bad src,dst --return-nomatch ! --update-counters \
                    ! --update-subcounters ! --packets-eq 3 --bytes-gt 4";
        let mixed = "-m set --bytes-gt 4 ! --packets-eq 3 ! --update-subcounters \
                     ! --update-counters --return-nomatch ! --set bad src,dst";
        assert_eq!(reprint(rule).as_deref(), Some(rule));
        assert_eq!(reprint(mixed).as_deref(), Some(rule));
    }

    #[test]
    fn what_the_tool_refuses_is_refused() {
        for wrong in [
            "-m set --match-set foo",
            "-m set --match-set foo source",
            "-m set --match-set foo src,src,src,src,src,src,src",
            "-m set --match-set foo src --bytes-eq 1 --bytes-lt 2",
            "-m set --match-set foo src ! --bytes-lt 2",
        ] {
            assert_eq!(reprint(wrong), None, "{wrong}");
        }
    }
}
