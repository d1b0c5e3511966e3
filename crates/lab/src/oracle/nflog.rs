//! Packets that the kernel logs: survivors by an NFLOG rule, and the path of one packet by TRACE.
//!
//! With nfnetlink_log as the backend of `net.netfilter.nf_log.*`, a TRACE target in the raw table logs every rule
//! that the packet matches to group 0, with a prefix such as `TRACE: raw:PREROUTING:rule:2 `.
//!
//! Source: `linux/netfilter/nfnetlink_log.h`, `linux/netfilter/nfnetlink.h`, netlink(7).

use std::fs::File;
use std::io::{self, Read, Write};

use super::sys;

/// The group that survivors are logged to.
pub const SURVIVORS: u16 = 5;
/// The group that TRACE logs to.
pub const TRACE: u16 = 0;

const SUBSYSTEM: u16 = 4;
const MSG_PACKET: u16 = SUBSYSTEM << 8;
const MSG_CONFIG: u16 = SUBSYSTEM << 8 | 1;
const REQUEST: u16 = 1;
const CFG_CMD: u16 = 1;
const CFG_MODE: u16 = 2;
const CFG_QTHRESH: u16 = 5;
const CMD_BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
const ATTR_MARK: u16 = 2;
const ATTR_PAYLOAD: u16 = 9;
const ATTR_PREFIX: u16 = 10;
/// `nlmsghdr` and `nfgenmsg`.
const HEADERS: usize = 20;

/// A listener on one group.
#[derive(Debug)]
pub struct Listener {
    socket: File,
    buffer: Vec<u8>,
}

/// A logged packet.
#[derive(Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// Its first bytes from the network header on.
    pub payload: &'a [u8],
    /// As the packet had it at the rule that logged it.
    pub mark: u32,
    /// The prefix of the rule.
    pub prefix: &'a str,
}

impl Listener {
    /// Binds a group of the calling thread's namespace; each packet comes at once, `copy` bytes of it.
    pub fn bind(group: u16, copy: u32) -> io::Result<Self> {
        let mut socket = sys::netfilter_socket()?;
        let mut mode = copy.to_be_bytes().to_vec();
        mode.extend([COPY_PACKET, 0]);
        for (kind, value) in
            [(CFG_CMD, &[CMD_BIND][..]), (CFG_MODE, &mode), (CFG_QTHRESH, &1_u32.to_be_bytes())]
        {
            socket.write_all(&config(group, kind, value))?;
        }
        Ok(Self { socket, buffer: vec![0; 1 << 17] })
    }

    /// Gives every packet logged so far to `take`.
    pub fn drain(&mut self, mut take: impl FnMut(&Logged<'_>)) -> io::Result<()> {
        loop {
            match self.socket.read(&mut self.buffer) {
                Ok(len) => each_packet(&self.buffer[..len], &mut take),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

fn config(group: u16, kind: u16, value: &[u8]) -> Vec<u8> {
    let attr_len = 4 + value.len();
    let len = HEADERS + attr_len.next_multiple_of(4);
    let mut message = Vec::with_capacity(len);
    message.extend((len as u32).to_ne_bytes());
    message.extend(MSG_CONFIG.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([0, 0]);
    message.extend(group.to_be_bytes());
    message.extend((attr_len as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(len, 0);
    message
}

fn each_packet(mut bytes: &[u8], take: &mut impl FnMut(&Logged<'_>)) {
    while let Some(header) = bytes.first_chunk::<8>() {
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let Some(message) = bytes.get(HEADERS..len) else { return };
        if kind == MSG_PACKET {
            take(&logged(message));
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
}

fn logged(mut attrs: &[u8]) -> Logged<'_> {
    let mut found = Logged { payload: &[], mark: 0, prefix: "" };
    while let Some(header) = attrs.first_chunk::<4>() {
        let len = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & 0x3fff;
        let Some(value) = attrs.get(4..len) else { break };
        match kind {
            ATTR_PAYLOAD => found.payload = value,
            ATTR_PREFIX => {
                let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
                found.prefix = std::str::from_utf8(text).unwrap_or_default();
            }
            ATTR_MARK => {
                found.mark = value.first_chunk().map_or(0, |mark| u32::from_be_bytes(*mark));
            }
            _ => {}
        }
        attrs = attrs.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_message_is_taken_apart() {
        let mut message = vec![0; HEADERS];
        for (kind, value) in
            [(ATTR_PREFIX, &b"TRACE: x\0"[..]), (ATTR_MARK, &[0, 0, 1, 2]), (ATTR_PAYLOAD, &[0x45])]
        {
            message.extend((4 + value.len() as u16).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        let len = message.len() as u32;
        message[..4].copy_from_slice(&len.to_ne_bytes());
        message[4..6].copy_from_slice(&MSG_PACKET.to_ne_bytes());
        let mut seen = 0;
        each_packet(&message, &mut |logged| {
            seen += 1;
            assert_eq!(*logged, Logged { payload: &[0x45], mark: 0x102, prefix: "TRACE: x" });
        });
        assert_eq!(seen, 1);
    }
}
