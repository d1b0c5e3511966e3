//! [`Helper`]: the kernel's helpers, by name.
//!
//! Source: Linux 6.18 `net/netfilter/nf_conntrack_*.c`, the names that they register.

/// Which helper looks into a flow's packets (`-j CT --helper`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Helper {
    /// None.
    #[default]
    None,
    /// FTP: expects data connections.
    Ftp,
    /// TFTP: expects the server's answer from another port.
    Tftp,
    /// NetBIOS names and SNMP: a broadcast of this host is answered from anywhere.
    Broadcast,
    /// Amanda's backups. What this one and those below expect is not known.
    Amanda,
    /// Direct connections between users of IRC.
    Irc,
    /// PPTP: tunnels.
    Pptp,
    /// Scanners.
    Sane,
    /// SIP: calls.
    Sip,
    /// H.323: registration, admission and status.
    Ras,
    /// H.323: calls.
    Q931,
    /// One that is not known at all.
    Other,
}

impl Helper {
    /// The helper of this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "" => Self::None,
            "ftp" => Self::Ftp,
            "tftp" => Self::Tftp,
            "netbios-ns" | "snmp" => Self::Broadcast,
            "amanda" => Self::Amanda,
            "irc" => Self::Irc,
            "pptp" => Self::Pptp,
            "sane" => Self::Sane,
            "sip" => Self::Sip,
            "RAS" => Self::Ras,
            "Q.931" => Self::Q931,
            _ => Self::Other,
        }
    }

    /// Returns the kernel's name of the helper; one of them where it has several.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Ftp => "ftp",
            Self::Tftp => "tftp",
            Self::Broadcast => "netbios-ns",
            Self::Amanda => "amanda",
            Self::Irc => "irc",
            Self::Pptp => "pptp",
            Self::Sane => "sane",
            Self::Sip => "sip",
            Self::Ras => "RAS",
            Self::Q931 => "Q.931",
            Self::Other => "other",
        }
    }

    /// Whether it writes into the payload of translated flows.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::None | Self::Tftp | Self::Broadcast | Self::Sane)
    }
}
