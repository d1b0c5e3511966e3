//! [`Kernel`]: the version of Linux whose answers are wanted, and which changes of answers it has.
//!
//! Contract: this is the one place that compares versions. Code whose answers differ by version asks [`Kernel::has`]
//! about a [`Change`], which cites the commit. Stable series get changes too, so a series alone often does not decide,
//! and the kernels of distributions are named after the series and their own builds: what is not known is `None`, and
//! the answer is unknown.

use std::fmt;

use crate::text::{TextError, lines};

/// A version of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The release that a series began with: (6, 18) of 6.18.44.
    series: (u16, u16),
    /// The stable release, 44 of 6.18.44, if that is known.
    stable: Option<u16>,
}

/// A change of what the kernel answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// `ipv6_find_hdr` fails where the last extension header claims more bytes than there are, so `-p`, and matches that
    /// look for another header, drop such a packet (legacy), or `-p` does not match it (nft); it found an upper layer beyond
    /// the end. Commit ee319bd3a0e9 ("ipv6: do
    /// not let ipv6_find_hdr() return an offset past the packet end").
    UpperLayerWithinPacket,
    /// Connections of DCCP are tracked like any other protocol's, without ports; a tracker of its own knew their
    /// states, where the kernel was built with it. Commit fd72f265bb00 ("netfilter: conntrack: remove DCCP protocol
    /// support").
    DccpIsGeneric,
    /// Messages by which multicast routers look for each other (ICMPv6 types 151 and 152) are exempt from tracking; they were
    /// INVALID. Commit 4a3540a8bf3c ("netfilter: conntrack: fix ct-state for ICMPv6 Multicast Router Discovery").
    RouterDiscoveryIsUntracked,
    /// Of the ports that a DNAT may give, the first free one is taken; before, the first of them was drawn. Announced as
    /// "netfilter: nat: restore default DNAT behavior".
    DestinationPortsInOrder,
}

/// Where a change came.
struct Since {
    /// The first series that has the change from its beginning.
    series: (u16, u16),
    /// The first stable release with the change, for older series; a series that is not here is not known.
    stable: &'static [((u16, u16), u16)],
}

impl Change {
    /// Found by the announcements and logs of stable releases of October 2026, 6.1.189 by Debian's changelog, too.
    const fn since(self) -> Since {
        match self {
            Self::UpperLayerWithinPacket => Since {
                series: (7, 3),
                stable: &[((5, 10), 271), ((6, 1), 189), ((6, 18), 55), ((7, 2), 9)],
            },
            Self::DccpIsGeneric => Since { series: (6, 17), stable: &[] },
            Self::RouterDiscoveryIsUntracked => Since { series: (6, 10), stable: &[] },
            Self::DestinationPortsInOrder => Since { series: (6, 8), stable: &[] },
        }
    }
}

impl Default for Kernel {
    /// The version that answers follow unless another is named.
    fn default() -> Self {
        Self { series: (6, 18), stable: Some(44) }
    }
}

impl Kernel {
    /// Reads a version as `uname -r` prints it, or its beginning: `6.1`, `6.18.44`, `6.1.0-56-amd64`. What follows a `-`
    /// or `+` is a build's name; after a 0 it hides the stable release.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(number);
        let series = (numbers.next()??, numbers.next()??);
        let stable = match numbers.next() {
            Some(Some(0)) if end < text.len() => None,
            Some(stable) => Some(stable?),
            None => None,
        };
        numbers.next().is_none().then_some(Self { series, stable })
    }

    /// Reads what `uname -srv` prints, also `uname -a`. Debian's kernels name the stable release in their build.
    ///
    /// # Errors
    /// The text is another system's, or has no version before the build; with the place.
    pub fn parse_uname(text: &str) -> Result<Self, TextError> {
        const EXPECTED: &str = "a kernel's version before its build (uname -srv)";
        let nothing = || TextError { line: 1, column: 1, expected: EXPECTED, found: String::new() };
        let line = lines(text).next().ok_or_else(nothing)?;
        let system = line.at(0);
        if line.words.len() > 1 && system.text != "Linux" {
            return Err(system.not("Linux"));
        }
        let build = line.words.iter().position(|word| word.text.starts_with('#'));
        let at = build.unwrap_or(line.words.len()).saturating_sub(1);
        let release = line.at(at);
        let named = Self::parse(release.text).ok_or_else(|| release.not(EXPECTED))?;
        let mut words = line.words.iter().skip(at).map(|word| word.text);
        let debian = words.find(|word| *word == "Debian").and(words.next()).and_then(Self::parse);
        Ok(debian.filter(|debian| debian.series == named.series).unwrap_or(named))
    }

    /// Whether its answers have a change; `None` where that is not known.
    #[must_use]
    pub fn has(self, change: Change) -> Option<bool> {
        let since = change.since();
        if self.series >= since.series {
            return Some(true);
        }
        let (_, first) = since.stable.iter().find(|(series, _)| *series == self.series)?;
        self.stable.map(|stable| stable >= *first)
    }
}

/// `6.18.44`; `6.1` where the stable release is not known.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { series: (major, minor), stable } = self;
        write!(f, "{major}.{minor}")?;
        stable.map_or(Ok(()), |stable| write!(f, ".{stable}"))
    }
}

/// Digits alone.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        Kernel::parse(text).map(|kernel| kernel.to_string())
    }

    #[test]
    fn versions_are_read_as_uname_prints_them() {
        for (text, expected) in [
            ("6.1", "6.1"),
            ("6.18.44", "6.18.44"),
            ("6.18.44-fc-v595", "6.18.44"),
            ("6.1.0", "6.1.0"),
            ("6.1.0-56-amd64", "6.1"),
            ("5.14.0-427.13.1.el9_4.x86_64", "5.14"),
            ("7.3-rc4", "7.3"),
            ("6.12.3+", "6.12.3"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in
            ["", "6", "6.", "6.x", "6.1.", "6.1.2.3", "v6.1", "6.1 ", "-6.1", "99999.1", "6.+1"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn uname_tells_the_stable_release_of_debian() {
        let debian = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)";
        for (text, expected) in [
            (format!("Linux 6.1.0-56-amd64 {debian}\n"), "6.1.192"),
            (format!("Linux fw 6.1.0-56-amd64 {debian} x86_64 GNU/Linux\n"), "6.1.192"),
            ("Linux 6.1.0-56-amd64 #1 SMP Debian 7.3.1-2".to_owned(), "6.1"),
            ("Linux 9.9 6.18.44-fc-v595 #1 SMP PREEMPT_DYNAMIC @0 x86_64".to_owned(), "6.18.44"),
            ("Linux 6.8.0-45-generic #45-Ubuntu SMP".to_owned(), "6.8"),
            ("6.18.44\n".to_owned(), "6.18.44"),
        ] {
            let read = Kernel::parse_uname(&text).map(|kernel| kernel.to_string());
            assert_eq!(read.as_deref(), Ok(expected), "{text}");
        }
        for text in ["", "#1 SMP", "FreeBSD 14.1-RELEASE", "Linux fw #1"] {
            assert!(Kernel::parse_uname(text).is_err(), "{text}");
        }
        let told = Kernel::parse_uname("Linux fw #1").unwrap_err().to_string();
        assert!(told.starts_with("1:7: expected a kernel's version"), "{told}");
    }

    #[test]
    fn a_change_is_there_from_its_release_on_and_unknown_where_nobody_says() {
        let has = |text| Kernel::parse(text).unwrap().has(Change::UpperLayerWithinPacket);
        for text in ["6.1.189", "6.1.192", "6.18.55", "7.3", "7.3-rc1", "7.4.2", "8.0"] {
            assert_eq!(has(text), Some(true), "{text}");
        }
        for text in ["6.1.188", "6.1.0", "6.18.44", "6.18.54", "5.10.270"] {
            assert_eq!(has(text), Some(false), "{text}");
        }
        for text in ["6.1", "6.18", "6.1.0-56-amd64", "6.6.200", "6.17.1", "5.14.0-427.el9"] {
            assert_eq!(has(text), None, "{text}");
        }
        assert_eq!(Kernel::default().has(Change::UpperLayerWithinPacket), Some(false));
        assert_eq!(Kernel::default().has(Change::DccpIsGeneric), Some(true));
        let older = Kernel::parse("6.1.192").unwrap();
        assert_eq!(older.has(Change::DccpIsGeneric), None, "it may be built without DCCP");
        assert_eq!(older.has(Change::RouterDiscoveryIsUntracked), None);
    }
}
