//! Header fields in the byte order of the file that they stand in.
//!
//! Contract: reading beyond the bytes gives `None`, never a panic.

/// Byte order of the host that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The four 32-bit fields of 16 bytes.
    #[inline]
    pub(super) fn words(self, bytes: &[u8; 16]) -> [u32; 4] {
        let all = u128::from_le_bytes(*bytes);
        let [a, b, c, d] = [all as u32, (all >> 32) as u32, (all >> 64) as u32, (all >> 96) as u32];
        match self {
            Self::Little => [a, b, c, d],
            Self::Big => [a.swap_bytes(), b.swap_bytes(), c.swap_bytes(), d.swap_bytes()],
        }
    }

    /// The 16-bit field at byte `at`.
    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(field),
            Self::Big => u16::from_be_bytes(field),
        })
    }

    /// The 32-bit field at byte `at`.
    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(field),
            Self::Big => u32::from_be_bytes(field),
        })
    }

    /// The 64-bit field at byte `at`.
    #[inline]
    pub(super) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(field),
            Self::Big => u64::from_be_bytes(field),
        })
    }
}
