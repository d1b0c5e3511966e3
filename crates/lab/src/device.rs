//! [`Device`]: the name of a network device, small enough to be copied about.

/// Longest name in bytes (`IFNAMSIZ` less the NUL).
const LONGEST: usize = 15;

/// A device's name: 1 to 15 bytes that the kernel takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    bytes: [u8; LONGEST],
    len: u8,
}

impl Device {
    /// A name that the kernel takes for a new device. Source: `dev_valid_name`.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let odd = |byte: u8| byte == b'/' || byte == b':' || !byte.is_ascii_graphic();
        let taken = matches!(name, "" | "." | ".." | "lo" | "all" | "default");
        if taken || name.len() > LONGEST || name.bytes().any(odd) {
            return None;
        }
        let mut bytes = [0; LONGEST];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { bytes, len: name.len() as u8 })
    }

    /// One of the names that scenes have unless told otherwise.
    pub(crate) const fn usual(name: &[u8; 2]) -> Self {
        let mut bytes = [0; LONGEST];
        bytes[0] = name[0];
        bytes[1] = name[1];
        Self { bytes, len: 2 }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_kernel_takes() {
        assert_eq!(Device::new("br-b74b417b331f").unwrap().name(), "br-b74b417b331f");
        for name in ["", "lo", "..", "a/b", "a b", "sixteen-letters."] {
            assert_eq!(Device::new(name), None, "{name}");
        }
    }
}
