//! [`Name`]: the name of a node, a label below the network's domain (RFC 1035, section 2.3.1, and digits as RFC 1123 says).

use std::fmt;
use std::str::FromStr;

/// Bytes of a label.
const MOST_BYTES: usize = 63;

/// The name of a node, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// The error for a text that is no name of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAName;

impl fmt::Display for NotAName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected a name, 1 to 63 letters, digits and -, which is neither first nor last",
        )
    }
}

impl std::error::Error for NotAName {}

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let is_good = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        let is_name = (1..=MOST_BYTES).contains(&text.len())
            && text.bytes().all(is_good)
            && !text.starts_with('-')
            && !text.ends_with('-');
        if is_name { Ok(Self(text.to_ascii_lowercase())) } else { Err(NotAName) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The node that a name of the network is, and nothing for names of other domains; a dot at the end counts for nothing.
///
/// # Errors
/// The name is below the domain, and no node's: the domain itself, or a name of two labels below it.
pub fn below(domain: &str, name: &str) -> Option<Result<Name, NotAName>> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let cut = name.len().checked_sub(domain.len())?;
    let (label, end) = (name.get(..cut)?, name.get(cut..)?);
    if !end.eq_ignore_ascii_case(domain) {
        return None;
    }
    match label.strip_suffix('.') {
        Some(label) => Some(label.parse()),
        None if label.is_empty() => Some(Err(NotAName)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels() {
        assert_eq!("Laptop-2".parse::<Name>().unwrap().as_str(), "laptop-2");
        for text in ["", "-a", "a-", "a.b", "a_b", "ä", &"a".repeat(64)] {
            assert_eq!(text.parse::<Name>(), Err(NotAName), "{text}");
        }
    }

    #[test]
    fn a_name_is_of_the_network_or_foreign() {
        let nas: Name = "nas".parse().unwrap();
        assert_eq!(below("home.example", "nas.home.example"), Some(Ok(nas.clone())));
        assert_eq!(below("home.example", "NAS.Home.Example."), Some(Ok(nas)));
        assert_eq!(below("home.example", "home.example"), Some(Err(NotAName)));
        assert_eq!(below("home.example", "a.nas.home.example"), Some(Err(NotAName)));
        for foreign in ["nashome.example", "example", "nas.home.example.org", "", "."] {
            assert_eq!(below("home.example", foreign), None, "{foreign}");
        }
    }
}
