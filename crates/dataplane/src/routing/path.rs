//! The four paths through the host, by name.

/// A path through the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Path {
    /// From one interface to another.
    Forward,
    /// To the host itself.
    Input,
    /// From the host itself.
    Output,
    /// From the host to itself: out through `lo`, then in on it.
    Loopback,
}

impl Path {
    /// The path's name, as `--path` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Input => "input",
            Self::Output => "output",
            Self::Loopback => "loopback",
        }
    }
}
