//! A disk in memory for the journal: it fails, tears what was not synchronised, and is full. The fuzz target `pending`
//! (`src/revisions/hostile`) has it, too.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

/// A disk with a cache that a crash loses, or writes in part.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk(Arc<Mutex<Platter>>);

#[derive(Debug, Default)]
pub(super) struct Platter {
    pub(super) cached: Vec<u8>,
    durable: Vec<u8>,
    /// What was done since the last synchronisation.
    unsynced: Vec<Done>,
    /// Changes until it fails for good.
    pub(super) left: Option<usize>,
    /// Changes until one of them fails.
    pub(super) fails_in: Option<usize>,
    /// Bytes that it may come to have.
    pub(super) room: Option<u64>,
    pub(super) changes: usize,
    pub(super) failures: usize,
}

#[derive(Debug, Clone)]
enum Done {
    Length(u64),
    Written(u64, Vec<u8>),
}

impl Disk {
    pub(super) fn lock(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().expect("the disk")
    }

    pub(super) fn of(bytes: &[u8]) -> Self {
        let platter =
            Platter { cached: bytes.to_vec(), durable: bytes.to_vec(), ..Platter::default() };
        Self(Arc::new(Mutex::new(platter)))
    }

    /// Whether it fails for good.
    pub(super) fn is_dead(&self) -> bool {
        self.lock().left == Some(0)
    }

    /// What is found after the power was off: some of what was not synchronised, by `draw`, and of one write a part.
    pub(super) fn after_crash(&self, mut draw: Draw) -> Self {
        let platter = self.lock();
        let mut bytes = platter.durable.clone();
        for done in &platter.unsynced {
            match (done, draw.below(3)) {
                (_, 0) => {}
                (Done::Written(at, written), 2) => {
                    let length = draw.below(written.len() + 1);
                    Done::Written(*at, written[..length].to_vec()).on(&mut bytes);
                }
                _ => done.on(&mut bytes),
            }
        }
        Self::of(&bytes)
    }
}

impl Done {
    fn on(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length as usize, 0),
            Self::Written(at, written) => {
                let at = *at as usize;
                bytes.resize(bytes.len().max(at + written.len()), 0);
                bytes[at..at + written.len()].copy_from_slice(written);
            }
        }
    }
}

impl Platter {
    fn change(&mut self) -> Result<(), io::Error> {
        self.changes += 1;
        let once = self.fails_in.take();
        self.fails_in = once.and_then(|more| more.checked_sub(1));
        if once == Some(0) || self.left == Some(0) {
            self.failures += 1;
            return Err(io::Error::other("it fails"));
        }
        self.left = self.left.map(|left| left - 1);
        Ok(())
    }

    fn grow(&self, to: u64) -> Result<(), io::Error> {
        match self.room {
            Some(room) if to > room => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.lock().cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let platter = self.lock();
        let from = platter.cached.get(offset as usize..offset as usize + out.len());
        let none = || io::Error::from(io::ErrorKind::UnexpectedEof);
        out.copy_from_slice(from.ok_or_else(none)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        let mut platter = self.lock();
        platter.change()?;
        platter.grow(len)?;
        platter.cached.resize(len as usize, 0);
        platter.unsynced.push(Done::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        let mut platter = self.lock();
        platter.change()?;
        let Platter { unsynced, durable, .. } = &mut *platter;
        unsynced.drain(..).for_each(|done| done.on(durable));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let mut platter = self.lock();
        platter.change()?;
        let end = offset as usize + data.len();
        platter.grow(end as u64)?;
        let done = Done::Written(offset, data.to_vec());
        done.on(&mut platter.cached);
        platter.unsynced.push(done);
        Ok(())
    }
}

/// Numbers by xorshift.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
