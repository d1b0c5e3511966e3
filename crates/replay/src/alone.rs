//! [`Alone`]: why one worker evaluates all packets where several were wanted.

/// Why packets depend on each other that the rules let several workers evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// The captures cannot be read a second time, which may be needed.
    Once,
    /// Fragments wait for others, and there is not room for all.
    Fragments,
    /// There may be more connections than the table holds.
    Connections,
    /// A connection may concern other workers' connections: what it is translated to steers elsewhere, or is not known.
    Translation,
    /// More packets were refused at once than are kept until they are answered.
    Answers,
    /// The access list changes in time.
    Bans,
    /// Packets are followed one by one.
    Follow,
}

impl Alone {
    /// The reason, as standard error and the report give it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Once => "standard input cannot be read twice, which sharing out may need",
            Self::Fragments => "fragments are put together in the order of the capture",
            Self::Connections => "there may be more connections than --ct-max",
            Self::Translation => {
                "a connection is given another port, or what it is translated to is not known"
            }
            Self::Answers => "more packets are refused at once than answers are looked for",
            Self::Follow => "--follow shows packets as they come",
            Self::Bans => "--bans changes in time, from packet to packet",
        }
    }
}
