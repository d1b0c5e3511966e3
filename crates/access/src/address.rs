//! What an address has to be: ordered, with a next one.

use std::fmt::Debug;

/// An address: `u32` for IPv4 and `u128` for IPv6, both in host order.
pub trait Address: Copy + Ord + Debug + Send + Sync + 'static {
    /// The lowest address.
    const LOWEST: Self;

    /// The address after this one, if there is one.
    fn next(self) -> Option<Self>;
}

impl Address for u32 {
    const LOWEST: Self = 0;

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Address for u128 {
    const LOWEST: Self = 0;

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}
