//! The groups that interfaces joined, as `ip maddr` prints them.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::text::{TextError, index, records};

/// Groups by interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups(HashMap<Box<str>, HashSet<IpAddr>>);

impl Groups {
    /// Reads them.
    ///
    /// # Errors
    /// A line that begins no record of ip(8), or a group that is none, with its place.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut groups = Self::default();
        for record in records(text) {
            index(&record.head)?;
            let name = record.head.at(1);
            if name.text.is_empty() {
                return Err(name.not("the name of an interface"));
            }
            let joined = groups.0.entry(name.text.into()).or_default();
            for line in &record.rest {
                if matches!(line.at(0).text, "inet" | "inet6") {
                    let word = line.at(1);
                    joined.insert(word.text.parse().map_err(|_| word.not("a group"))?);
                }
            }
        }
        Ok(groups)
    }

    /// Every group that some interface joined.
    pub(crate) fn all(&self) -> impl Iterator<Item = IpAddr> {
        self.0.values().flatten().copied()
    }

    /// The interfaces, in the order of their names.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> = self.0.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// Whether an interface joined a group; `None` where the interface is not named.
    #[must_use]
    pub fn joined(&self, interface: &str, group: IpAddr) -> Option<bool> {
        self.0.get(interface).map(|groups| groups.contains(&group))
    }

    /// Whether interfaces joined a group: `None` where one did and another did not.
    #[must_use]
    pub fn joined_by_all(&self, group: IpAddr) -> Option<bool> {
        let mut answers = self.0.values().map(|groups| groups.contains(&group));
        let first = answers.next()?;
        answers.all(|other| other == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_interfaces() {
        let text = "1:\tlo\n\tinet  224.0.0.1\n\tinet6 ff02::1\n2:\tbr0\n\tlink  33:33:00:00:00:01\n\
                    \tinet  224.0.0.1 users 2\n\tinet  224.0.0.106\n";
        let groups = Groups::parse(text).unwrap();
        let joined = |name: &str, group: &str| groups.joined(name, group.parse().unwrap());
        assert_eq!(joined("br0", "224.0.0.106"), Some(true));
        assert_eq!(joined("lo", "224.0.0.106"), Some(false));
        assert_eq!(joined("eth9", "224.0.0.1"), None);
        assert_eq!(groups.joined_by_all("224.0.0.1".parse().unwrap()), Some(true));
        assert_eq!(groups.joined_by_all("224.0.0.106".parse().unwrap()), None);
        assert_eq!(Groups::parse("1:\tlo\n\tinet  here").unwrap_err().column, 8);
    }
}
