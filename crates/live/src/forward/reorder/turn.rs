//! [`Lane::turn`]: what a worker does with a lane, again and again: it stages what came, works on one part, and
//! releases what is done.

use std::hint;
use std::time::Duration;

use super::lane::{Batch, Claim, Lane, Part, Stage};

/// Batches that are staged in a turn at most: for a few workers, so that workers that wait for work get it, and no
/// more, so that work goes on under a flood.
const STAGED: usize = 4;

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

    /// Fills the parts of a batch with what comes next. There may be nothing.
    ///
    /// # Errors
    /// Nothing can be received any more.
    fn stage(&mut self, parts: &mut [B]) -> Result<Came, Self::Error>;

    /// Makes room where there is none for what comes next: drops it, or leaves it where it is. Returns what was
    /// dropped.
    ///
    /// # Errors
    /// The error of [`Way::stage`].
    fn refuse(&mut self) -> Result<Came, Self::Error>;

    /// Wakes sleeping workers: something was staged that they may take, or more has come than this worker took.
    fn call(&mut self) {}

    /// Works on a part, at the same time as other workers on other parts.
    fn work(&mut self, part: &mut B);

    /// Takes back a part on which work took too long: the batch was released without it.
    fn late(&mut self, part: B);

    /// Sends a batch whose turn it is.
    ///
    /// # Errors
    /// Nothing can be sent any more.
    fn release(&mut self, parts: &mut [Part<B>]) -> Result<(), Self::Error>;
}

impl<B: Batch> Lane<B> {
    /// Takes a worker's turn: returns whether there was something to do. It stages nothing unless it `receives`.
    ///
    /// # Errors
    /// The error of the way. The batch that was on its way is lost.
    pub fn turn<W: Way<B>>(
        &self,
        worker: usize,
        receives: bool,
        way: &mut W,
    ) -> Result<bool, W::Error> {
        let (mut is_busy, claim) = match self.shape().parts {
            1 if receives => self.stage_own(worker, way)?,
            1 => (false, None),
            _ => (receives && self.stage_some(way)?, self.claim(worker, way.now())),
        };
        // Before its own work, which may take long: no other worker would know of the rest meanwhile.
        if is_busy && self.has_unclaimed() {
            way.call();
        }
        if let Some(mut claim) = claim {
            is_busy = true;
            way.work(&mut claim);
            if let Some(part) = claim.finish() {
                way.late(part);
            }
        }
        Ok(self.release_done(way)? || is_busy)
    }

    /// Stages what came as a batch that is this worker's; returns whether anything came, and the batch if there was room.
    fn stage_own<W: Way<B>>(
        &self,
        worker: usize,
        way: &mut W,
    ) -> Result<(bool, Option<Claim<'_, B>>), W::Error> {
        for _ in 0..LOOKS {
            match self.stage(way.now()) {
                Stage::Room(mut stager) => {
                    let came = way.stage(stager.parts())?;
                    if came.frames == 0 {
                        return Ok((false, None));
                    }
                    let claim = stager.take(worker, way.now());
                    if came.is_more {
                        way.call();
                    }
                    return Ok((true, Some(claim)));
                }
                Stage::Later => (0..PAUSES).for_each(|_| hint::spin_loop()),
                Stage::Full(stager) => {
                    let refused = way.refuse()?;
                    stager.refuse(way.now(), refused.is_more);
                    return Ok((refused.frames > 0, None));
                }
            }
        }
        Ok((false, None))
    }

    /// Stages what came, as far as there is room and no other worker does; returns whether anything came.
    fn stage_some<W: Way<B>>(&self, way: &mut W) -> Result<bool, W::Error> {
        for number in 0..STAGED {
            match self.stage(way.now()) {
                Stage::Room(mut stager) => {
                    let came = way.stage(stager.parts())?;
                    if came.frames == 0 {
                        return Ok(number > 0);
                    }
                    stager.put(way.now(), came.is_more);
                    if !came.is_more {
                        return Ok(true);
                    }
                }
                Stage::Later => return Ok(number > 0),
                Stage::Full(stager) => {
                    let refused = way.refuse()?;
                    stager.refuse(way.now(), refused.is_more);
                    return Ok(refused.frames > 0 || number > 0);
                }
            }
        }
        Ok(true)
    }

    /// Releases what is done, unless another worker does; returns whether there was anything.
    fn release_done<W: Way<B>>(&self, way: &mut W) -> Result<bool, W::Error> {
        let Some(mut releaser) = self.release() else { return Ok(false) };
        let mut is_any = false;
        while let Some(parts) = releaser.next(way.now()) {
            is_any = true;
            way.release(parts)?;
        }
        Ok(is_any)
    }
}
