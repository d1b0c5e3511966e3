//! Whether a recorded history of an access-control engine could have happened one operation at a time.
//!
//! [`record`] runs small random programs on an engine by several threads and notes when each operation began
//! and ended; [`check`] looks for an order that respects these times and in which every answer is right
//! (Wing and Gong's search, with Lowe's memory of what was tried). The checker is proven on histories that
//! are known to be bad; `make histories` counts how many hold operations that overlap, and fails where few do.

pub mod check;
pub mod record;
pub mod subject;

/// Addresses of a history: all of PNG and R fit one word.
pub const ADDRESSES: u32 = 4;

/// PNG in the lowest four bits, then R, four bits for each destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State(u32);

impl State {
    /// Nobody banned; every address accepts all sources, or none.
    #[must_use]
    pub fn new(default_accept: bool) -> Self {
        Self(if default_accept { 0xffff0 } else { 0 })
    }

    fn permits(self, source: u32, destination: u32) -> bool {
        let png = self.0 >> source & 1 == 1;
        let accepts = self.0 >> (ADDRESSES * (destination + 1) + source) & 1 == 1;
        !png && accepts
    }

    fn after(self, config: &crate::Config<u32>) -> Self {
        let mut state = self.0 & !(1 << config.address);
        state |= u32::from(config.persona_non_grata) << config.address;
        for source in config.begin..config.end.min(ADDRESSES) {
            let bit = 1 << (ADDRESSES * (config.address + 1) + source);
            state = if config.accept { state | bit } else { state & !bit };
        }
        Self(state)
    }
}

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// `update`, which answers nothing.
    Update(crate::Config<u32>),
    /// `decide`, and its answer.
    Decide {
        /// Who sends.
        source: u32,
        /// To whom.
        destination: u32,
        /// What the engine answered.
        permitted: bool,
    },
}

/// An operation with the moments between which it took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Which thread.
    pub thread: usize,
    /// What it did.
    pub act: Act,
    /// Before it was called.
    pub began: u64,
    /// After it returned.
    pub ended: u64,
}

#[cfg(test)]
mod tests;
