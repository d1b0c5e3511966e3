//! A table from address to value that several threads read and change at a time, entries never removed.
//!
//! It is papaya's hash map, whose readers take no lock; under loom it is a list under a lock, which gives
//! loom each call as one step. A value that was read stays valid, and its place is not used again, as long
//! as the guard is held: two reads that yield the same reference saw no change in between.

#[cfg(loom)]
pub(crate) use model::Table;
#[cfg(not(loom))]
pub(crate) use real::Table;

use crate::Address;

/// What an engine that never removes an entry needs of its index.
pub trait Index<A: Address, V>: Send + Sync {
    /// Keeps what was read.
    type Guard<'a>
    where
        Self: 'a;

    /// With room for this number of addresses; it grows beyond.
    fn with_room(addresses: usize) -> Self;

    /// To be held while values are looked at.
    fn guard(&self) -> Self::Guard<'_>;

    /// The value of an address.
    fn get<'g>(&'g self, address: A, guard: &'g Self::Guard<'_>) -> Option<&'g V>;

    /// The value of an address, made if it is not there.
    fn get_or_insert<'g>(
        &'g self,
        address: A,
        make: impl FnOnce() -> V,
        guard: &'g Self::Guard<'_>,
    ) -> &'g V;

    /// Calls `each` with all values.
    fn for_each(&self, each: impl FnMut(&V));
}

#[cfg(not(loom))]
mod real {
    use papaya::{Compute, HashMap, LocalGuard, Operation};

    use super::Index;
    use crate::sync::pause;
    use crate::{Address, Mix};

    /// papaya's map.
    #[derive(Debug)]
    pub struct Table<A: Address, V> {
        map: HashMap<A, V, Mix>,
    }

    impl<A: Address, V: Send + Sync> Table<A, V> {
        /// Replaces the value of an address by what `make` makes of the one there; again if another thread
        /// was faster.
        pub(crate) fn replace(
            &self,
            address: A,
            make: impl Fn(Option<&V>) -> V,
            guard: &LocalGuard<'_>,
        ) {
            pause();
            let changed = self.map.compute(
                address,
                |old| {
                    let new = make(old.map(|(_, value)| value));
                    pause();
                    Operation::<V, ()>::Insert(new)
                },
                guard,
            );
            debug_assert!(matches!(changed, Compute::Inserted(..) | Compute::Updated { .. }));
        }

        /// Replaces the value of an address, whatever it is.
        pub(crate) fn put(&self, address: A, value: V, guard: &LocalGuard<'_>) {
            pause();
            self.map.insert(address, value, guard);
            pause();
        }
    }

    impl<A: Address, V: Send + Sync> Index<A, V> for Table<A, V> {
        type Guard<'a>
            = LocalGuard<'a>
        where
            Self: 'a;

        fn with_room(addresses: usize) -> Self {
            // The map grows by itself only when probing has become long: twice the room keeps it short.
            Self { map: HashMap::with_capacity_and_hasher(2 * addresses, Mix::default()) }
        }

        fn guard(&self) -> LocalGuard<'_> {
            self.map.guard()
        }

        #[inline]
        fn get<'g>(&'g self, address: A, guard: &'g LocalGuard<'_>) -> Option<&'g V> {
            pause();
            self.map.get(&address, guard)
        }

        fn get_or_insert<'g>(
            &'g self,
            address: A,
            make: impl FnOnce() -> V,
            guard: &'g LocalGuard<'_>,
        ) -> &'g V {
            pause();
            self.map.get_or_insert_with(address, make, guard)
        }

        fn for_each(&self, mut each: impl FnMut(&V)) {
            self.map.pin().values().for_each(&mut each);
        }
    }
}

#[cfg(loom)]
mod model {
    use super::Index;
    use crate::Address;
    use crate::sync::RwLock;

    /// Values are leaked: a model has few.
    #[derive(Debug)]
    pub struct Table<A: Address, V: 'static> {
        values: RwLock<Vec<(A, &'static V)>>,
    }

    impl<A: Address, V: Send + Sync> Table<A, V> {
        fn find(&self, address: A) -> Option<&'static V> {
            self.values.read().iter().find(|(of, _)| *of == address).map(|(_, value)| *value)
        }

        pub(crate) fn replace(&self, address: A, make: impl Fn(Option<&V>) -> V, _guard: &()) {
            loop {
                let old = self.find(address);
                let new: &'static V = Box::leak(Box::new(make(old)));
                let mut values = self.values.write();
                let at = values.iter().position(|(of, _)| *of == address);
                match (at, old) {
                    (None, None) => return values.push((address, new)),
                    (Some(at), Some(old)) if std::ptr::eq(values[at].1, old) => {
                        values[at].1 = new;
                        return;
                    }
                    _ => {}
                }
            }
        }

        pub(crate) fn put(&self, address: A, value: V, _guard: &()) {
            let value: &'static V = Box::leak(Box::new(value));
            let mut values = self.values.write();
            match values.iter().position(|(of, _)| *of == address) {
                Some(at) => values[at].1 = value,
                None => values.push((address, value)),
            }
        }
    }

    impl<A: Address, V: Send + Sync> Index<A, V> for Table<A, V> {
        type Guard<'a>
            = ()
        where
            Self: 'a;

        fn with_room(_addresses: usize) -> Self {
            Self { values: RwLock::new(Vec::new()) }
        }

        fn guard(&self) {}

        fn get<'g>(&'g self, address: A, _guard: &'g ()) -> Option<&'g V> {
            self.find(address)
        }

        fn get_or_insert<'g>(&'g self, address: A, make: impl FnOnce() -> V, _: &'g ()) -> &'g V {
            let mut values = self.values.write();
            if let Some((_, value)) = values.iter().find(|(of, _)| *of == address) {
                return value;
            }
            let value: &'static V = Box::leak(Box::new(make()));
            values.push((address, value));
            value
        }

        fn for_each(&self, mut each: impl FnMut(&V)) {
            self.values.read().iter().for_each(|(_, value)| each(value));
        }
    }
}
