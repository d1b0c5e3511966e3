//! Interfaces by name.

use std::io;

use super::sys;

/// Names of all interfaces, in the order of their indices.
///
/// # Errors
/// The kernel refuses.
pub fn names() -> io::Result<Vec<String>> {
    sys::names()
}

/// Whether an interface is up, and frames can pass: it has a carrier.
///
/// # Errors
/// There is none of this name.
pub fn has_link(name: &str) -> io::Result<bool> {
    const PASSES: i32 = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(i32::from(sys::flags(name)?) & PASSES == PASSES)
}

/// Takes an interface up or down. Needs `CAP_NET_ADMIN`.
///
/// # Errors
/// There is none of this name, or the kernel refuses.
pub fn set_up(name: &str, is_up: bool) -> io::Result<()> {
    const UP: i16 = libc::IFF_UP as i16;
    let flags = sys::flags(name)?;
    sys::set_flags(name, if is_up { flags | UP } else { flags & !UP })
}

/// Whether an interface is an end of a virtual link (`veth`).
///
/// # Errors
/// There is none of this name, or its driver does not say.
pub fn is_veth(name: &str) -> io::Result<bool> {
    Ok(sys::driver(name)? == "veth")
}

/// Whether an interface may leave work on sent frames to their receiver: checksums, cutting superframes, or VLAN tags
/// that are not in the frame.
///
/// # Errors
/// There is none of this name, or its driver does not say.
pub fn leaves_work(name: &str) -> io::Result<bool> {
    const GET_CHECKSUMS: u32 = 0x16;
    const GET_TCP_SEGMENTATION: u32 = 0x1e;
    const GET_SEGMENTATION: u32 = 0x23;
    const GET_FLAGS: u32 = 0x25;
    const TAGS_APART: u32 = 1 << 7;
    let asked = [GET_CHECKSUMS, GET_TCP_SEGMENTATION, GET_SEGMENTATION];
    let offloads = asked.into_iter().map(|what| sys::ethtool(name, what));
    let mut leaves = sys::ethtool(name, GET_FLAGS)? & TAGS_APART != 0;
    for offload in offloads {
        leaves |= offload? != 0;
    }
    Ok(leaves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there_and_no_other_of_no_name() {
        let names = names().unwrap();
        assert!(names.iter().any(|name| name == "lo"), "{names:?}");
        for name in &names {
            has_link(name).unwrap();
        }
        for none in ["", "no such", "sixteen bytes or"] {
            assert!(has_link(none).is_err(), "{none}");
        }
    }
}
