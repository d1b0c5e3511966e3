//! [`Table`]: what Java knows by a number.
//!
//! Contract: a number names one thing and is never given again, so that one which is stale, or made up, is an error and
//! nothing else. One thread has a thing at a time. To get at it takes one compare-and-swap.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::entry::Thrown;

/// Things by their numbers.
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// What they are called in errors.
    name: &'static str,
    places: Box<[Mutex<Place<T>>]>,
}

#[derive(Debug)]
struct Place<T> {
    /// How many things have been here: part of the number of the one that is.
    generation: u32,
    thing: Option<T>,
}

impl<T> Table<T> {
    /// With room for so many.
    pub(crate) fn new(name: &'static str, room: u16) -> Self {
        let place = || Mutex::new(Place { generation: 0, thing: None });
        Self { name, places: (0..room).map(|_| place()).collect() }
    }

    /// Takes a thing in: its number.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn insert(&self, thing: T) -> Result<i64, Thrown> {
        for (at, place) in self.places.iter().enumerate() {
            let Ok(mut place) = place.try_lock() else { continue };
            if place.thing.is_none() && place.generation < u32::MAX >> 1 {
                place.generation += 1;
                place.thing = Some(thing);
                return Ok(i64::from(place.generation) << 32 | at as i64);
            }
        }
        Err(Thrown(format!("expected {} {}s at most", self.places.len(), self.name)))
    }

    /// Does something with the thing of a number.
    ///
    /// # Errors
    /// There is none, another thread has it, or a thread that had it panicked.
    #[inline]
    pub(crate) fn with<R>(&self, number: i64, what: impl FnOnce(&mut T) -> R) -> Result<R, Thrown> {
        let mut place = match self.place(number)?.try_lock() {
            Ok(place) => place,
            Err(TryLockError::WouldBlock) => return Err(self.error("is another thread's for now")),
            Err(TryLockError::Poisoned(_)) => return Err(self.error("has panicked")),
        };
        self.thing(&mut place, number).map(what)
    }

    /// Takes the thing of a number out: the number names nothing any more.
    ///
    /// # Errors
    /// There is none, or another thread has it.
    pub(crate) fn remove(&self, number: i64) -> Result<T, Thrown> {
        let mut place = match self.place(number)?.try_lock() {
            Ok(place) => place,
            Err(TryLockError::WouldBlock) => return Err(self.error("is another thread's for now")),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        self.thing(&mut place, number)?;
        self.places[at(number)].clear_poison();
        place.thing.take().ok_or_else(|| self.unknown())
    }

    fn place(&self, number: i64) -> Result<&Mutex<Place<T>>, Thrown> {
        self.places.get(at(number)).ok_or_else(|| self.unknown())
    }

    fn thing<'p>(
        &self,
        place: &'p mut MutexGuard<'_, Place<T>>,
        number: i64,
    ) -> Result<&'p mut T, Thrown> {
        let is_its = i64::from(place.generation) == number >> 32;
        place.thing.as_mut().filter(|_| is_its).ok_or_else(|| self.unknown())
    }

    fn unknown(&self) -> Thrown {
        self.error("was closed, or never opened")
    }

    fn error(&self, what: &str) -> Thrown {
        Thrown(format!("this {} {what}", self.name))
    }
}

impl<T: Clone> Table<T> {
    /// The thing of a number, for threads that share it.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn get(&self, number: i64) -> Result<T, Thrown> {
        let mut place = self.place(number)?.lock().unwrap_or_else(PoisonError::into_inner);
        self.thing(&mut place, number).cloned()
    }
}

/// The place that a number names.
fn at(number: i64) -> usize {
    (number & i64::from(u32::MAX)) as usize
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, Thrown>) -> String {
        result.unwrap_err().0
    }

    #[test]
    fn a_number_that_was_given_up_names_nothing_even_where_something_else_is() {
        let table = Table::new("worker", 1);
        let first = table.insert("first").unwrap();
        assert_eq!(message(table.insert("too many")), "expected 1 workers at most");
        assert_eq!(table.remove(first), Ok("first"));
        let second = table.insert("second").unwrap();
        let unknown = "this worker was closed, or never opened";
        for number in [first, 0, -1, 1, i64::MAX, i64::MIN, second + 1, second | 1 << 62] {
            assert_eq!(message(table.get(number)), unknown, "{number}");
            assert_eq!(message(table.with(number, |_| ())), unknown, "{number}");
            assert_eq!(message(table.remove(number)), unknown, "{number}");
        }
        assert_eq!(table.get(second), Ok("second"));
    }

    #[test]
    fn one_thread_has_a_thing_at_a_time() {
        let table = Table::new("worker", 2);
        let number = table.insert(1).unwrap();
        let inner = table.with(number, |_| message(table.with(number, |_| ())));
        assert_eq!(inner, Ok("this worker is another thread's for now".to_owned()));
        let removed = table.with(number, |_| message(table.remove(number)));
        assert_eq!(removed, Ok("this worker is another thread's for now".to_owned()));
    }

    #[test]
    fn what_panicked_can_be_given_up_alone_and_leaves_its_place() {
        let table = Table::new("worker", 1);
        let number = table.insert(1).unwrap();
        let panics = || table.with(number, |_| panic!("on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(message(table.with(number, |_| ())), "this worker has panicked");
        assert_eq!(table.remove(number), Ok(1));
        let next = table.insert(2).unwrap();
        assert_eq!(table.with(next, |thing| *thing), Ok(2));
    }
}
