//! [`Lack`]: something of a packet that its words do not give, and what to write so that they do.

/// Something of a packet that its words do not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    Options,
    Payload,
    Len,
    Seq,
    Ack,
    Win,
    Chunk,
    Type,
    Spi,
    Mac,
    Label,
    Id,
    Df,
    /// The packet that an ICMP error is about.
    Quote,
}

impl Lack {
    /// The key that gives it.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Len => "len",
            Self::Options => "options",
            Self::Seq => "seq",
            Self::Ack => "ack",
            Self::Win => "win",
            Self::Chunk => "chunk",
            Self::Type => "type",
            Self::Spi => "spi",
            Self::Mac => "mac",
            Self::Label => "label",
            Self::Id => "id",
            Self::Df => "df",
            Self::Quote => "ctstate",
        }
    }

    /// What to write in the packet.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Payload => "payload=TEXT, payload=0xHEX, payload=none or dns=NAME TYPE",
            Self::Len => "len=BYTES",
            Self::Options => "options=mss:1460 or options=usual",
            Self::Seq => "seq=N",
            Self::Ack => "ack=N",
            Self::Win => "win=N",
            Self::Chunk => "chunk=init",
            Self::Type => "type=request",
            Self::Spi => "spi=N",
            Self::Mac => "mac=xx:xx:xx:xx:xx:xx",
            Self::Label => "label=N",
            Self::Id => "id=N",
            Self::Df => "df=yes or df=no",
            Self::Quote => "ctstate=RELATED",
        }
    }

    /// What to write under `[defaults]` of a cases file, so that every packet there has it.
    pub(crate) fn default(self) -> Option<&'static str> {
        Some(match self {
            Self::Payload | Self::Len => "payload = \"none\"",
            Self::Options => "options = \"usual\"",
            Self::Seq => "seq = \"1\"",
            Self::Ack => "ack = \"1\"",
            Self::Win => "win = \"65535\"",
            Self::Chunk => "chunk = \"init\"",
            Self::Type => "type = \"request\"",
            Self::Spi => "spi = \"0\"",
            Self::Mac => "mac = \"02:00:00:00:00:01\"",
            Self::Label => "label = \"0\"",
            Self::Id => "id = \"0\"",
            Self::Df => "df = \"yes\"",
            Self::Quote => return None,
        })
    }
}
