//! Interfaces as far as rules tell them apart: names that all tests answer alike are one.

use rules::model::IfaceTest;

/// Longest name that an interface has.
const LONGEST: usize = 15;

/// Interfaces that no test tells apart, by one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The name of one of them; empty where there is no interface.
    pub(crate) name: String,
    /// How rules would write all of them.
    pub(crate) words: String,
    /// What their names start with, where it is not one name alone.
    prefix: Option<String>,
}

/// Every kind: the first has no interface, then come whole names in their order, prefixes in theirs, and the last is that
/// of names that no test names.
#[derive(Debug)]
pub(crate) struct Names {
    kinds: Vec<Kind>,
    /// Where whole names end and prefixes begin.
    whole: usize,
}

impl Names {
    /// The kinds that these tests tell apart, and the names of `links`, which are kinds of their own whatever tests
    /// say.
    pub(crate) fn of<'t>(tests: impl Iterator<Item = &'t IfaceTest>, links: &'t [String]) -> Self {
        let (mut whole, mut prefixes): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        whole.extend(links.iter().map(String::as_str));
        for test in tests {
            let names = if test.prefix { &mut prefixes } else { &mut whole };
            names.push(&*test.name);
        }
        for names in [&mut whole, &mut prefixes] {
            names.sort_unstable();
            names.dedup();
        }
        let single =
            |name: &str| Kind { name: name.to_owned(), words: name.to_owned(), prefix: None };
        let mut kinds = vec![Kind { words: "none".to_owned(), ..single("") }];
        kinds.extend(whole.iter().filter(|name| !name.is_empty()).map(|name| single(name)));
        let end_of_whole = kinds.len();
        let of_prefix = |prefix: &&str| {
            let name = another(prefix, &whole, &prefixes)?;
            let words = format!("{prefix}+");
            Some(Kind { name, words, prefix: Some((*prefix).to_owned()) })
        };
        kinds.extend(prefixes.iter().filter(|prefix| !prefix.is_empty()).filter_map(of_prefix));
        let other = another("", &whole, &prefixes).unwrap_or_default();
        let words = "any other".to_owned();
        kinds.push(Kind { name: other, words, prefix: Some(String::new()) });
        Self { kinds, whole: end_of_whole }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u128 {
        self.kinds.len() as u128
    }

    /// The kind of this number.
    pub(crate) fn kind(&self, number: u128) -> Option<&Kind> {
        self.kinds.get(usize::try_from(number).ok()?)
    }

    /// The number of the kind that an interface of this name is of; of none where the name is empty.
    pub(crate) fn number(&self, name: &str) -> u128 {
        let whole = || self.kinds[..self.whole].binary_search_by(|kind| (*kind.name).cmp(name));
        let of_prefix =
            |len| self.prefixes().binary_search_by(|kind| kind.start().cmp(&name[..len]));
        let lengths = (1..=name.len()).rev().filter(|len| name.is_char_boundary(*len));
        let longest = || lengths.map(of_prefix).find_map(Result::ok);
        let longest = || Some(self.whole + longest()?);
        whole().ok().or_else(longest).unwrap_or(self.kinds.len() - 1) as u128
    }

    /// The kinds of names with a prefix.
    fn prefixes(&self) -> &[Kind] {
        &self.kinds[self.whole..self.kinds.len() - 1]
    }

    /// Numbers of the kinds that a test accepts, as ranges with both ends.
    pub(crate) fn accepted(&self, test: &IfaceTest) -> Vec<(u128, u128)> {
        let name = &*test.name;
        let starts = |of: &str| of < name || of.starts_with(name);
        let named = &self.kinds[..self.whole];
        let mut bounds = match (test.prefix, name.is_empty()) {
            (true, true) => vec![0, self.kinds.len()],
            (true, false) => {
                let of = |(first, kinds): (usize, &[Kind])| {
                    let low = kinds.partition_point(|kind| kind.start() < name);
                    let high = kinds.partition_point(|kind| starts(kind.start()));
                    [first + low, first + high]
                };
                [(0, named), (self.whole, self.prefixes())].map(of).concat()
            }
            (false, _) => {
                let low = named.partition_point(|kind| &*kind.name < name);
                let is_there = named.get(low).is_some_and(|kind| kind.name == name);
                vec![low, low + usize::from(is_there)]
            }
        };
        if test.invert {
            bounds.insert(0, 0);
            bounds.push(self.kinds.len());
        }
        let ranges = bounds.chunks_exact(2).filter(|pair| pair[0] < pair[1]);
        ranges.map(|pair| (pair[0] as u128, pair[1] as u128 - 1)).collect()
    }
}

impl Kind {
    /// What the names of its interfaces start with.
    fn start(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.name)
    }
}

/// A name that starts like this, but is none of the whole ones and starts like no longer prefix.
fn another(prefix: &str, whole: &[&str], prefixes: &[&str]) -> Option<String> {
    let is_free = |name: &str| {
        let mut longer = (prefix.len() + 1..=name.len()).filter_map(|len| name.get(..len));
        !name.is_empty()
            && name.len() <= LONGEST
            && whole.binary_search(&name).is_err()
            && !longer.any(|longer| prefixes.binary_search(&longer).is_ok())
    };
    let ends = ('0'..='9').chain('a'..='z').map(String::from);
    let two = ('a'..='z').flat_map(|a| ('0'..='9').map(move |b| format!("{a}{b}")));
    let usual =
        if prefix.is_empty() { vec!["other0".to_owned(), "if0".to_owned()] } else { vec![] };
    let names = usual.into_iter().chain(ends).chain(two);
    names
        .chain(std::iter::once(String::new()))
        .map(|end| format!("{prefix}{end}"))
        .find(|name| is_free(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(text: &str) -> IfaceTest {
        let (invert, name) = text.strip_prefix("! ").map_or((false, text), |name| (true, name));
        let (prefix, name) = name.strip_suffix('+').map_or((false, name), |name| (true, name));
        IfaceTest { name: name.into(), prefix, invert }
    }

    #[test]
    fn the_kinds_of_a_test_are_those_whose_names_it_accepts() {
        let texts = ["lo", "eth0", "eth+", "eth1+", "eth12", "e+", "! eth1+", "! eth0", "wg+", "+"];
        let tests = texts.map(test);
        let names = Names::of(tests.iter(), &["br0".to_owned()]);
        for test in &tests {
            let numbers = names.accepted(test).into_iter().flat_map(|(low, high)| low..=high);
            let kinds = (0..).zip(&names.kinds);
            let accepted = kinds.filter(|(_, kind)| test.accepts(&kind.name)).map(|(at, _)| at);
            assert_eq!(numbers.collect::<Vec<_>>(), accepted.collect::<Vec<_>>(), "{test:?}");
        }
        for (number, kind) in (0..).zip(&names.kinds) {
            assert_eq!(names.number(&kind.name), number, "{kind:?}");
        }
        let words = |name| names.kind(names.number(name)).map(|kind| &*kind.words);
        let found = ["eth12", "eth13", "eth2", "em1", "wg0", "wg", "ppp0"].map(words);
        let wanted = ["eth12", "eth1+", "eth+", "e+", "wg+", "wg+", "any other"].map(Some);
        assert_eq!(found, wanted);
    }
}
