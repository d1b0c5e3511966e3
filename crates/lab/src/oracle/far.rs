//! The far end of a link whose near end belongs to a host that is tried out, and that host's memory of connections.
//!
//! Contract: far ends stand in the namespace of the host itself; what arrives at them reaches no stack, for it is addressed
//! to others. Source: packet(7); `linux/netfilter/nfnetlink_conntrack.h`.

use std::fs::File;
use std::io::{self, Write};

use super::netns::{device_index, ip, write_setting};
use super::sys;

/// A link's far end, by which frames come in.
#[derive(Debug)]
pub struct FarEnd(File);

impl FarEnd {
    /// Sets a device up in the calling thread's namespace, and opens it.
    pub fn open(name: &str) -> io::Result<Self> {
        write_setting(&format!("ipv6/conf/{name}/disable_ipv6"), "1")?;
        ip(&format!("link set {name} arp off up\n"))?;
        sys::packet_socket(device_index(name)?).map(Self)
    }

    /// Sends a frame: the host has handled it when this returns.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.0.write_all(frame)
    }
}

/// The connections of the calling thread's namespace.
#[derive(Debug)]
pub struct Connections(File);

impl Connections {
    /// Opens the door to them.
    pub fn open() -> io::Result<Self> {
        sys::netfilter_socket().map(Self)
    }

    /// Forgets all of them (`IPCTNL_MSG_CT_DELETE` of none in particular).
    pub fn forget(&mut self) -> io::Result<()> {
        const DELETE: u16 = 1 << 8 | 2;
        const REQUEST: u16 = 1;
        const LEN: u32 = 20;
        let mut message = LEN.to_ne_bytes().to_vec();
        message.extend(DELETE.to_ne_bytes());
        message.extend(REQUEST.to_ne_bytes());
        message.extend([0; 12]);
        self.0.write_all(&message)
    }
}
