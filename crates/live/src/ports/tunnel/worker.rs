//! [`Worker`]: one worker's part of a tunnel: the state for sealing and for opening, and the memory for both.

use std::mem;
use std::sync::Arc;

use pktio::datagram::SendBatch;
use pktio::{Burst, Envelope, Frame, FrameBuf, FrameMeta, LinkType, Lost, Notes, Pool, Taken};
use tunnel::{HEADROOM, PeerId};

use super::fit;
use super::open::{self, Datagram, Opens};
use super::outer::OUTER;
use super::reception::CHUNK;
use super::seal::{Plan, place, seal_one};
use super::site::Site;

/// Chunks for pieces of superframes, for packets whose memory has no room to be sealed in, and for long ones that came
/// with others.
const CHUNKS: usize = 96;

/// What the workers of a tunnel note about a burst: the datagrams in frames that came, the plans for frames that leave.
#[derive(Default)]
struct Noted {
    datagrams: Vec<Datagram>,
    plans: Vec<Plan>,
}

/// One worker's part of a tunnel.
pub(super) struct Worker {
    site: Arc<Site>,
    pub(super) pool: Pool,
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
        self.close(&mut burst, &mut Notes::default(), &mut |_, _| {});
        self.site.send(burst.iter().map(|frame| frame.bytes), &mut self.sending);
    }

    /// Plans what is to be done with each frame.
    pub(super) fn plan(&self, burst: &Burst, plans: &mut Vec<Plan>) {
        // A panic may have left plans of other frames.
        plans.clear();
        let now = self.site.now();
        plans.extend(burst.iter().enumerate().map(|(at, frame)| {
            let segment = burst.live(at).and_then(|live| live.segments).map(|it| it.size);
            match frame.meta.link_type {
                LinkType::SEALED => Plan::Sealed,
                _ => place(&self.site, frame, segment, now).unwrap_or_else(Plan::Lost),
            }
        }));
    }

    /// Takes frames out of a burst that are lost, or wait, with their plans; returns the number of frames that wait.
    #[cold]
    pub(super) fn set_apart(
        &mut self,
        burst: &mut Burst,
        plans: &mut Vec<Plan>,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) -> usize {
        let mut out = mem::take(&mut self.out);
        let mut placed = Vec::with_capacity(plans.len());
        for (taken, plan) in burst.drain(usize::MAX).zip(plans.drain(..)) {
            match plan {
                Plan::Lost(why) => {
                    let (bytes, meta) = bytes_of(&taken);
                    lose(why, Frame { bytes, meta: &meta });
                }
                Plan::Waits(peer, reached) => self.late.push((peer, reached, taken.into_buf())),
                plan @ (Plan::Sealed | Plan::Seal(..)) => {
                    out.append(taken);
                    placed.push(plan);
                }
            }
        }
        *plans = placed;
        mem::swap(burst, &mut out);
        self.out = out;
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

/// The bytes of a frame, and its metadata.
fn bytes_of<'t>(taken: &'t Taken<'_>) -> (&'t [u8], FrameMeta) {
    match taken {
        Taken::Moved(frame) => (frame.bytes(), frame.meta),
        Taken::Lent { bytes, meta } => (bytes, *meta),
    }
}

impl Envelope for Worker {
    fn decipher(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        let datagrams = &mut notes.of::<Noted>().datagrams;
        // A panic may have left some, which lie in other frames.
        datagrams.clear();
        open::stage(&self.site, burst, datagrams, lose);
        open::decipher(burst, datagrams, lose);
    }

    fn release(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        let datagrams = &mut notes.of::<Noted>().datagrams;
        let Self { site, pool, opens, sending, .. } = self;
        opens.release(site, burst, datagrams, lose);
        opens.join(burst, datagrams, pool, lose);
        if !opens.answers.is_empty() {
            site.send_own(&opens.answers, sending);
            opens.answers.clear();
        }
        for peer in mem::take(&mut opens.reached) {
            self.send_waiting(peer);
        }
    }

    fn place(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) -> usize {
        if self.site.is_narrow() {
            fit::fit(&self.site, burst, &self.pool, lose);
        }
        let plans = &mut notes.of::<Noted>().plans;
        self.plan(burst, plans);
        let is_placed = |plan: &Plan| matches!(plan, Plan::Sealed | Plan::Seal(..));
        if plans.iter().all(is_placed) { 0 } else { self.set_apart(burst, plans, lose) }
    }

    fn seal(
        &mut self,
        burst: &mut Burst,
        notes: &mut Notes,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        let (plans, mut out) = (&mut notes.of::<Noted>().plans, mem::take(&mut self.out));
        for (taken, plan) in burst.drain(usize::MAX).zip(plans.drain(..)) {
            let Plan::Seal(run, how) = plan else {
                out.append(taken);
                continue;
            };
            let (_, meta) = bytes_of(&taken);
            if let Err(why) = seal_one(&self.pool, taken, run, how, &mut out) {
                lose(why, Frame { bytes: &[], meta: &meta });
            }
        }
        mem::swap(burst, &mut out);
        self.out = out;
    }
}
