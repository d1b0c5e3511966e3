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
    /// The 16-bit field at byte `at`.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(field),
            Self::Big => u16::from_be_bytes(field),
        })
    }

    /// The 32-bit field at byte `at`.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(field),
            Self::Big => u32::from_be_bytes(field),
        })
    }

    /// The 64-bit field at byte `at`.
    pub(super) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(field),
            Self::Big => u64::from_be_bytes(field),
        })
    }
}
