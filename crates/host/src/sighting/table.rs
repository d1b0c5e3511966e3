//! [`Table`]: tables of frames, whose keys are hashes of [`print`](mod@super::print) already, and how much they keep.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Frames that are remembered after they were taken, so that a late second sighting is still known as one.
pub const KEPT: usize = 65_536;

/// Most entries of equal content that are looked at.
pub(super) const MOST: usize = 64;

/// Flows, datagrams in fragments, and stations at bridges, that are remembered.
pub(super) const REMEMBERED: usize = 65_536;

/// Keys are hashed already.
#[derive(Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

pub(super) type Table<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// A key of frames that went out, or of the others.
pub(super) fn one_way(key: u64, is_out: bool) -> u64 {
    if is_out { !key } else { key }
}

/// Forgets everything that is in a table which holds too much.
pub(super) fn clear_full<K, T, S>(table: &mut HashMap<K, T, S>) {
    if table.len() > REMEMBERED {
        table.clear();
    }
}
