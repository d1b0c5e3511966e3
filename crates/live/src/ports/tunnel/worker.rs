//! [`Worker`]: one worker's part of a tunnel: the state for sealing and for opening, and the memory for both.

use std::mem;
use std::sync::Arc;

use pktio::datagram::SendBatch;
use pktio::{Burst, Envelope, Frame, FrameBuf, LinkType, Lost, Pool, Taken};
use tunnel::{HEADROOM, PeerId};

use super::fit;
use super::open::Opens;
use super::outer::OUTER;
use super::reception::CHUNK;
use super::seal::{Plan, place, seal_one};
use super::site::Site;

/// Chunks for pieces of superframes, for packets whose memory has no room to be sealed in, and for long ones that came
/// with others.
const CHUNKS: usize = 96;

/// One worker's part of a tunnel.
pub(super) struct Worker {
    site: Arc<Site>,
    pub(super) pool: Pool,
    plans: Vec<Plan>,
    late: Vec<(PeerId, u64, FrameBuf)>,
    /// The frames made of a burst, before they change places.
    out: Burst,
    pub(super) opens: Opens,
    pub(super) sending: SendBatch,
}

impl Worker {
    pub(super) fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            pool: Pool::new(CHUNKS, CHUNK, OUTER + HEADROOM),
            plans: Vec::new(),
            late: Vec::new(),
            out: Burst::with_capacity(0),
            opens: Opens::default(),
            sending: SendBatch::default(),
        }
    }

    /// Sends what waited for a peer, which can be reached now.
    pub(super) fn send_waiting(&mut self, peer: PeerId) {
        let frames = match self.site.lock().peers.get_mut(&peer) {
            Some(peer) => peer.waiting.take(),
            None => return,
        };
        let mut burst = Burst::with_capacity(0);
        frames.into_iter().for_each(|frame| burst.push_frame(frame));
        // What is lost now was counted as sent when it began to wait.
        self.seal(&mut burst, &mut |_, _| {});
        self.site.send(burst.iter().map(|frame| frame.bytes), &mut self.sending);
    }

    /// Plans what is to be done with each frame.
    pub(super) fn plan(&mut self, burst: &Burst) {
        // A panic may have left plans of other frames.
        self.plans.clear();
        let mut state = self.site.lock();
        let now = self.site.now();
        for (at, frame) in burst.iter().enumerate() {
            let segment = burst.live(at).and_then(|live| live.segments).map(|it| it.size);
            let plan = match frame.meta.link_type {
                LinkType::SEALED => Ok(Plan::Sealed),
                _ => place(&self.site, &mut state, frame, segment, now),
            };
            self.plans.push(plan.unwrap_or_else(Plan::Lost));
        }
    }

    /// Carries out the plan of each frame; returns the number of frames that wait.
    pub(super) fn carry_out(
        &mut self,
        burst: &mut Burst,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) -> usize {
        let (mut plans, mut out) = (mem::take(&mut self.plans), mem::take(&mut self.out));
        for (taken, plan) in burst.drain(usize::MAX).zip(plans.drain(..)) {
            let (meta, bytes) = match &taken {
                Taken::Moved(frame) => (frame.meta, frame.bytes()),
                Taken::Lent { bytes, meta } => (*meta, *bytes),
            };
            match plan {
                Plan::Sealed => out.append(taken),
                Plan::Lost(why) => lose(why, Frame { bytes, meta: &meta }),
                Plan::Waits(peer, reached) => self.late.push((peer, reached, taken.into_buf())),
                Plan::Seal(run, how) => {
                    if let Err(why) = seal_one(&self.pool, taken, run, how, &mut out) {
                        lose(why, Frame { bytes: &[], meta: &meta });
                    }
                }
            }
        }
        mem::swap(burst, &mut out);
        (self.plans, self.out) = (plans, out);
        if self.late.is_empty() { 0 } else { self.wait(lose) }
    }

    /// Makes frames wait for their peers' sessions; returns their number.
    #[cold]
    fn wait(&mut self, lose: &mut dyn FnMut(Lost, Frame<'_>)) -> usize {
        let (mut waiting, mut reached) = (0, Vec::new());
        let mut state = self.site.lock();
        for (id, before, frame) in self.late.drain(..) {
            match state.peers.get_mut(&id).filter(|peer| peer.waiting.has_room()) {
                Some(peer) => {
                    peer.waiting.push(frame);
                    waiting += 1;
                    // Another worker got its session meanwhile, and sent what waited then.
                    if peer.reached != before && !reached.contains(&id) {
                        reached.push(id);
                    }
                }
                None => lose(Lost::NoSession, frame.frame()),
            }
        }
        drop(state);
        self.site.send_due(&mut self.sending);
        reached.into_iter().for_each(|peer| self.send_waiting(peer));
        waiting
    }
}

impl Envelope for Worker {
    fn open(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) {
        let Self { site, pool, opens, sending, .. } = self;
        opens.open(site, pool, burst, lose);
        if !opens.answers.is_empty() {
            site.send_own(&opens.answers, sending);
            opens.answers.clear();
        }
        for peer in mem::take(&mut opens.reached) {
            self.send_waiting(peer);
        }
    }

    fn seal(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) -> usize {
        if self.site.is_narrow() {
            fit::fit(&self.site, burst, &self.pool, lose);
        }
        self.plan(burst);
        self.carry_out(burst, lose)
    }
}
