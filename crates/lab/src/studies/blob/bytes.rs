//! Numbers at places of a C struct, in the machine's byte order; what lies beyond its end reads as 0 and is not written.

use rules::model::IfaceTest;

/// Bytes of an interface's name (`IFNAMSIZ`).
pub(super) const NAME: usize = 16;

pub(super) fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

pub(super) fn byte(bytes: &[u8], at: usize) -> u8 {
    let [byte] = get(bytes, at);
    byte
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(get(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(get(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(get(bytes, at))
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(to) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..value.len())) {
        to.copy_from_slice(value);
    }
}

pub(super) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, &value.to_ne_bytes());
}

pub(super) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_ne_bytes());
}

/// A C string of at most so many bytes.
///
/// # Errors
/// It is not UTF-8.
pub(super) fn text(bytes: &[u8], at: usize, most: usize) -> Result<&str, String> {
    let field = bytes.get(at..).map_or(&[][..], |rest| &rest[..most.min(rest.len())]);
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    std::str::from_utf8(text).map_err(|why| why.to_string())
}

/// Writes the name of an interface, the first or the second of an entry's two, and its mask behind both.
pub(super) fn put_iface(bytes: &mut [u8], at: usize, side: usize, test: &IfaceTest) {
    let name = if test.prefix { format!("{}+", test.name) } else { test.name.to_string() };
    let covered = if test.prefix { test.name.len() } else { name.len() + 1 };
    put(bytes, at + side * NAME, &name.as_bytes()[..name.len().min(NAME - 1)]);
    put(bytes, at + (2 + side) * NAME, &[u8::MAX; NAME][..covered.min(NAME)]);
}
