//! What forwarders are made of: back ends, and tools that give the kernel its rules.

/// What moves frames between a program and the kernel's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    /// Packet sockets with rings.
    AfPacket,
    /// AF_XDP sockets.
    AfXdp,
}

impl Backend {
    /// As a configuration names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
        }
    }

    /// What is measured of it.
    pub(super) fn forwarding(self) -> &'static str {
        match self {
            Self::AfPacket => "live.forward.veth_af_packet",
            Self::AfXdp => "live.forward.veth_af_xdp",
        }
    }
}

/// What gives the kernel its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// `iptables-legacy-restore`.
    Legacy,
    /// `iptables-nft-restore`.
    Nft,
}

impl Tool {
    /// As it is installed.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Legacy => "iptables-legacy-restore",
            Self::Nft => "iptables-nft-restore",
        }
    }

    /// As figures name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "iptables-legacy",
            Self::Nft => "iptables-nft",
        }
    }
}
