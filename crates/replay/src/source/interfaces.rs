//! The interfaces of all captures of a stream, each once.

use std::collections::HashMap;
use std::sync::Arc;

use pktio::Interface;

/// Interfaces by number. None ever changes.
#[derive(Default)]
pub(super) struct Table {
    all: Vec<Interface>,
    numbers: HashMap<Interface, u32>,
    shared: Arc<[Interface]>,
}

impl Table {
    /// The number of an interface, which may be new.
    pub(super) fn number(&mut self, interface: Interface) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(interface).or_insert_with_key(|interface| {
            self.all.push(interface.clone());
            next
        })
    }

    /// All of them so far.
    pub(super) fn all(&mut self) -> Arc<[Interface]> {
        if self.shared.len() != self.all.len() {
            self.shared = self.all.as_slice().into();
        }
        Arc::clone(&self.shared)
    }
}
