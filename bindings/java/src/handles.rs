//! [`Table`]: what Java knows by a number.
//!
//! Contract: a number names one thing and is never given again, so that one which is stale, or made up, is an error and
//! nothing else. One thread has a thing at a time. To get at it takes one compare-and-swap.

use std::fmt;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Things by their numbers.
#[derive(Debug)]
pub(crate) struct Table<T> {
    kind: Kind,
    places: Box<[Mutex<Place<T>>]>,
}

/// What the things of a table are: part of their numbers, so that one of another kind names none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Run = 1,
    Worker = 2,
}

#[derive(Debug)]
struct Place<T> {
    /// How many things have been here: part of the number of the present one.
    generation: u32,
    thing: Option<T>,
}

/// Why a number is of no use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The number names nothing, or nothing any more.
    Unknown(Kind),
    /// Another thread has what it names.
    Busy(Kind),
    /// The thread that had it panicked.
    Panicked(Kind),
    /// The table has no room for another thing.
    Full(Kind, usize),
}

impl<T> Table<T> {
    /// Makes a table with room for `room` things.
    pub(crate) fn new(kind: Kind, room: u16) -> Self {
        let place = || Mutex::new(Place { generation: 0, thing: None });
        Self { kind, places: (0..room).map(|_| place()).collect() }
    }

    /// Takes a thing in: its number.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn insert(&self, thing: T) -> Result<i64, Lost> {
        for (at, place) in self.places.iter().enumerate() {
            let Ok(mut place) = place.try_lock() else { continue };
            if place.thing.is_none() && place.generation < u32::MAX >> 1 {
                place.generation += 1;
                place.thing = Some(thing);
                return Ok(i64::from(place.generation) << 32 | self.tag() << 16 | at as i64);
            }
        }
        Err(Lost::Full(self.kind, self.places.len()))
    }

    /// Does something with the thing of a number.
    ///
    /// # Errors
    /// There is none, another thread has it, or a thread that had it panicked.
    #[inline]
    pub(crate) fn with<R>(&self, number: i64, what: impl FnOnce(&mut T) -> R) -> Result<R, Lost> {
        let mut place = match self.place(number)?.try_lock() {
            Ok(place) => place,
            Err(TryLockError::WouldBlock) => return Err(Lost::Busy(self.kind)),
            Err(TryLockError::Poisoned(_)) => return Err(Lost::Panicked(self.kind)),
        };
        self.thing(&mut place, number).map(what)
    }

    /// Takes the thing of a number out: the number names nothing any more.
    ///
    /// # Errors
    /// There is none, or another thread has it.
    pub(crate) fn remove(&self, number: i64) -> Result<T, Lost> {
        let place = self.place(number)?;
        let mut held = match place.try_lock() {
            Ok(held) => held,
            Err(TryLockError::WouldBlock) => return Err(Lost::Busy(self.kind)),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        self.thing(&mut held, number)?;
        place.clear_poison();
        held.thing.take().ok_or(Lost::Unknown(self.kind))
    }

    fn place(&self, number: i64) -> Result<&Mutex<Place<T>>, Lost> {
        let is_of_kind = number >> 16 & 0xFFFF == self.tag();
        let at = (number & 0xFFFF) as usize;
        self.places.get(at).filter(|_| is_of_kind).ok_or(Lost::Unknown(self.kind))
    }

    fn thing<'p>(&self, place: &'p mut Place<T>, number: i64) -> Result<&'p mut T, Lost> {
        let is_its = i64::from(place.generation) == number >> 32;
        place.thing.as_mut().filter(|_| is_its).ok_or(Lost::Unknown(self.kind))
    }

    fn tag(&self) -> i64 {
        self.kind as i64
    }
}

impl<T: Clone> Table<T> {
    /// The thing of a number, for threads that share it.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn get(&self, number: i64) -> Result<T, Lost> {
        let mut place = self.place(number)?.lock().unwrap_or_else(PoisonError::into_inner);
        self.thing(&mut place, number).cloned()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "run",
            Self::Worker => "worker",
        })
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(kind) => write!(f, "this {kind} was closed, or never opened"),
            Self::Busy(kind) => write!(f, "another thread has this {kind}"),
            Self::Panicked(kind) => write!(f, "this {kind} has panicked"),
            Self::Full(kind, room) => write!(f, "expected {room} {kind}s at most"),
        }
    }
}

impl std::error::Error for Lost {}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const UNKNOWN: Lost = Lost::Unknown(Kind::Worker);

    #[test]
    fn a_number_that_was_given_up_names_nothing_even_where_something_else_is() {
        let table = Table::new(Kind::Worker, 1);
        let first = table.insert("first").unwrap();
        assert_eq!(table.insert("too many"), Err(Lost::Full(Kind::Worker, 1)));
        assert_eq!(table.remove(first), Ok("first"));
        let second = table.insert("second").unwrap();
        for number in [first, 0, -1, 1, i64::MAX, i64::MIN, second + 1, second | 1 << 62] {
            assert_eq!(table.get(number), Err(UNKNOWN), "{number}");
            assert_eq!(table.with(number, |_| ()), Err(UNKNOWN), "{number}");
            assert_eq!(table.remove(number), Err(UNKNOWN), "{number}");
        }
        assert_eq!(table.get(second), Ok("second"));
    }

    #[test]
    fn a_number_of_another_kind_names_nothing() {
        let runs = Table::new(Kind::Run, 1);
        let workers = Table::new(Kind::Worker, 1);
        let (run, worker) = (runs.insert(1).unwrap(), workers.insert(2).unwrap());
        assert_eq!(workers.get(run), Err(UNKNOWN));
        assert_eq!(runs.get(worker), Err(Lost::Unknown(Kind::Run)));
        assert_eq!((runs.get(run), workers.get(worker)), (Ok(1), Ok(2)));
    }

    #[test]
    fn one_thread_has_a_thing_at_a_time() {
        let table = Table::new(Kind::Worker, 2);
        let number = table.insert(1).unwrap();
        let inner = table.with(number, |_| (table.with(number, |_| ()), table.remove(number)));
        let busy = Lost::Busy(Kind::Worker);
        assert_eq!(inner, Ok((Err(busy), Err(Lost::Busy(Kind::Worker)))));
    }

    #[test]
    fn what_panicked_can_be_given_up_alone_and_leaves_its_place() {
        let table = Table::new(Kind::Worker, 1);
        let number = table.insert(1).unwrap();
        let panics = || table.with(number, |_| panic!("on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(table.with(number, |_| ()), Err(Lost::Panicked(Kind::Worker)));
        assert_eq!(table.remove(number), Ok(1));
        let next = table.insert(2).unwrap();
        assert_eq!(table.with(next, |thing| *thing), Ok(2));
    }
}
