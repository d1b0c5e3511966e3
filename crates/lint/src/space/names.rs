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

/// Every kind: the first has no interface, the last is that of names that no test names.
#[derive(Debug)]
pub(crate) struct Names {
    kinds: Vec<Kind>,
}

impl Names {
    /// The kinds that these tests tell apart.
    pub(crate) fn of<'t>(tests: impl Iterator<Item = &'t IfaceTest>) -> Self {
        let (mut whole, mut prefixes) = (Vec::new(), Vec::new());
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
        let of_prefix = |prefix: &&str| {
            let name = another(prefix, &whole, &prefixes)?;
            let words = format!("{prefix}+");
            Some(Kind { name, words, prefix: Some((*prefix).to_owned()) })
        };
        kinds.extend(prefixes.iter().filter(|prefix| !prefix.is_empty()).filter_map(of_prefix));
        let other = another("", &whole, &prefixes).unwrap_or_default();
        let words = "any other".to_owned();
        kinds.push(Kind { name: other, words, prefix: Some(String::new()) });
        Self { kinds }
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
        let whole = self.kinds.iter().position(|kind| kind.prefix.is_none() && kind.name == name);
        let longest = || {
            let starts = |kind: &Kind| {
                let prefix = kind.prefix.as_ref().filter(|prefix| name.starts_with(&***prefix));
                prefix.map(String::len)
            };
            let kinds = self.kinds.iter().enumerate();
            kinds.filter_map(|(number, kind)| Some((starts(kind)?, number))).max()
        };
        whole.or_else(|| longest().map(|(_, number)| number)).unwrap_or(0) as u128
    }

    /// Numbers of the kinds that a test accepts.
    pub(crate) fn accepted(&self, test: &IfaceTest) -> Vec<u128> {
        let kinds = (0..).zip(&self.kinds);
        kinds.filter(|(_, kind)| test.accepts(&kind.name)).map(|(number, _)| number).collect()
    }
}

/// A name that starts like this, but is none of the whole ones and starts like no longer prefix.
fn another(prefix: &str, whole: &[&str], prefixes: &[&str]) -> Option<String> {
    let is_free = |name: &str| {
        let longer = |other: &&&str| other.len() > prefix.len() && name.starts_with(**other);
        !name.is_empty()
            && name.len() <= LONGEST
            && !whole.contains(&name)
            && prefixes.iter().find(longer).is_none()
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
