//! What differs between the texts of the families, as values: how the tests that need no extension are
//! spelt and in which order they print, and the form of tables and chains around the rules.
//!
//! Source: iptables(8), arptables-nft(8), ebtables-nft(8); text of their save commands, version 1.8.9 (the
//! one measured) and 1.8.13 (that of the acceptance cases).

use crate::family::Family;
use crate::header::Field;

/// A test that needs no extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Source,
    Destination,
    Input,
    Output,
    LogicalInput,
    LogicalOutput,
    Protocol,
    Fragment,
    Field(Field),
}

/// The spellings of a test; the first one prints.
type Spelling = (Part, &'static [&'static str]);

/// A family's text.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Tests in the order in which they print.
    pub(super) parts: &'static [Spelling],
    /// `-m NAME` loads a match; otherwise its options do.
    pub(crate) names_matches: bool,
    /// The target prints before the tests, and its options after them.
    pub(crate) target_first: bool,
    /// `-d ! x` is as good as `! -d x`.
    pub(super) late_invert: bool,
    /// A table ends with COMMIT, and counters follow policies.
    pub(crate) commits: bool,
    /// User chains have policies.
    pub(crate) user_policies: bool,
    /// The verdict that a rule without one prints.
    pub(crate) no_verdict: Option<&'static str>,
}

const IP: Dialect = Dialect {
    parts: &[
        (Part::Source, &["-s", "--source", "--src"]),
        (Part::Destination, &["-d", "--destination", "--dst"]),
        (Part::Input, &["-i", "--in-interface"]),
        (Part::Output, &["-o", "--out-interface"]),
        (Part::Protocol, &["-p", "--protocol", "--proto"]),
        (Part::Fragment, &["-f", "--fragment", "--fragments"]),
    ],
    names_matches: true,
    target_first: false,
    late_invert: false,
    commits: true,
    user_policies: false,
    no_verdict: None,
};

const ARP: Dialect = Dialect {
    parts: &[
        (Part::Input, &["-i", "--in-interface"]),
        (Part::Output, &["-o", "--out-interface"]),
        (Part::Source, &["-s", "--source", "--source-ip", "--src-ip"]),
        (Part::Field(Field::SenderHardware), &["--src-mac", "--source-mac"]),
        (Part::Destination, &["-d", "--destination", "--destination-ip", "--dst-ip"]),
        (Part::Field(Field::TargetHardware), &["--dst-mac", "--destination-mac"]),
        (Part::Field(Field::HardwareLen), &["--h-length", "-l"]),
        (Part::Field(Field::Operation), &["--opcode"]),
        (Part::Field(Field::HardwareType), &["--h-type"]),
        (Part::Field(Field::ProtocolType), &["--proto-type"]),
    ],
    names_matches: true,
    target_first: true,
    late_invert: true,
    commits: false,
    user_policies: false,
    no_verdict: None,
};

const BRIDGE: Dialect = Dialect {
    parts: &[
        (Part::Field(Field::EtherType), &["-p", "--protocol", "--proto"]),
        (Part::Source, &["-s", "--source", "--src"]),
        (Part::Destination, &["-d", "--destination", "--dst"]),
        (Part::Input, &["-i", "--in-interface", "--in-if"]),
        (Part::LogicalInput, &["--logical-in"]),
        (Part::Output, &["-o", "--out-interface", "--out-if"]),
        (Part::LogicalOutput, &["--logical-out"]),
    ],
    names_matches: false,
    target_first: false,
    late_invert: true,
    commits: false,
    user_policies: true,
    no_verdict: Some("CONTINUE"),
};

/// Spellings of tests that iptables takes as abbreviations: a match or target that has such an option has it.
const ABBREVIATIONS: [&str; 2] = ["--proto", "--fragment"];

/// Whether `option` only abbreviates the name of a test.
pub(super) fn is_abbreviation(option: &str) -> bool {
    ABBREVIATIONS.contains(&option)
}

impl Dialect {
    /// The test that an option names, with its printed spelling.
    pub(super) fn part(&self, option: &str) -> Option<(Part, &'static str)> {
        let found = self.parts.iter().find(|(_, names)| names.contains(&option));
        found.map(|(part, names)| (*part, names[0]))
    }
}

impl Family {
    /// How this family's text differs from that of others.
    pub(crate) fn dialect(self) -> &'static Dialect {
        match self {
            Self::Ipv4 | Self::Ipv6 => &IP,
            Self::Arp => &ARP,
            Self::Bridge => &BRIDGE,
        }
    }
}
