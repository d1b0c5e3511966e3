//! [`Lane::turn`]: what a worker does with a lane, again and again: it stages what came, works on it, and releases what
//! is done.

use std::hint;
use std::time::Duration;

use super::lane::{Batch, Claim, Lane, Stage};

/// How often a worker looks whether it may receive, while another one does, and the pauses in between: some 20 µs, for
/// which nobody has to go to sleep.
const LOOKS: usize = 8;
const PAUSES: usize = 128;

/// The frames that came in one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Came {
    /// The number of frames, or whatever it is that comes.
    pub frames: usize,
    /// Whether there is more, as far as is known.
    pub is_more: bool,
}

/// Where a worker's batches come from, what it does with them, and where they go.
pub trait Way<B> {
    /// Why the turn failed.
    type Error;

    /// The present time, on a clock that does not go back.
    fn now(&self) -> Duration;

    /// Fills a batch with what comes next, while no other worker does. There may be nothing.
    ///
    /// # Errors
    /// Nothing can be received any more.
    fn stage(&mut self, batch: &mut B) -> Result<Came, Self::Error>;

    /// Makes room where there is none for what comes next: drops it, or leaves it where it is. Returns what was
    /// dropped.
    ///
    /// # Errors
    /// The error of [`Way::stage`].
    fn refuse(&mut self) -> Result<Came, Self::Error>;

    /// Wakes sleeping workers: more has come than this worker took.
    fn call(&mut self) {}

    /// Works on a batch, at the same time as other workers on other batches.
    fn work(&mut self, batch: &mut B);

    /// Takes back a batch on which work took too long: later ones were released without it.
    fn late(&mut self, batch: B);

    /// Sends a batch whose turn it is, while no other worker does.
    ///
    /// # Errors
    /// Nothing can be sent any more.
    fn release(&mut self, batch: &mut B) -> Result<(), Self::Error>;
}

impl<B: Batch> Lane<B> {
    /// Takes a worker's turn: returns whether there was something to do. It stages nothing unless it `receives`.
    ///
    /// # Errors
    /// The error of the way. The batch that was on its way is lost.
    pub fn turn<W: Way<B>>(&self, receives: bool, way: &mut W) -> Result<bool, W::Error> {
        let (is_busy, claim) = if receives { self.stage_own(way)? } else { (false, None) };
        if let Some(mut claim) = claim {
            way.work(&mut claim);
            if let Some(batch) = claim.finish() {
                way.late(batch);
            }
        }
        Ok(self.release_done(way)? || is_busy)
    }

    /// Stages what came as a batch that is this worker's; returns whether anything came, and the batch if there was room.
    fn stage_own<W: Way<B>>(&self, way: &mut W) -> Result<(bool, Option<Claim<'_, B>>), W::Error> {
        for _ in 0..LOOKS {
            match self.stage() {
                Stage::Room(mut stager) => {
                    let came = way.stage(stager.batch())?;
                    if came.frames == 0 {
                        return Ok((false, None));
                    }
                    let claim = stager.take(way.now());
                    // Before its own work, which may take long: no other worker would know of the rest meanwhile.
                    if came.is_more {
                        way.call();
                    }
                    return Ok((true, Some(claim)));
                }
                Stage::Later => (0..PAUSES).for_each(|_| hint::spin_loop()),
                Stage::Full(_stager) => return Ok((way.refuse()?.frames > 0, None)),
            }
        }
        Ok((false, None))
    }

    /// Releases what is done, unless another worker does; returns whether there was anything.
    fn release_done<W: Way<B>>(&self, way: &mut W) -> Result<bool, W::Error> {
        let Some(mut releaser) = self.release() else { return Ok(false) };
        let mut is_any = false;
        while let Some(batch) = releaser.next(way.now()) {
            is_any = true;
            way.release(batch)?;
        }
        Ok(is_any)
    }
}
