//! [`End`]: one end of a wire: its port, the frames that it receives, and their counters.
//!
//! Contract: one thread's own. A port whose link is down takes no frame and has none; what a port does not take is
//! dropped, as by a card whose ring is full.

use std::sync::Arc;

use pktio::{Burst, Envelope, Frame, FrameMeta, LinkType, Lost, Port, PortError, Readiness};

use crate::forward::account::{Account, Reason};
use crate::forward::replies::Rate;
use crate::forward::taps::Tap;
use crate::ports::offload::{as_left_to_a_port, as_on_a_link};
use crate::ports::too_long::TooLong;
use pktio::BoxedPort;

/// One end of a wire, with the frames that it receives.
pub(crate) struct End {
    pub(super) name: Arc<str>,
    pub(super) port: BoxedPort,
    /// Opens and seals the port's frames, if they need it.
    envelope: Option<Box<dyn Envelope>>,
    /// The other port offloads: superframes received here stay whole.
    pub(super) leaves_whole: bool,
    /// Whether received frames may belong to another worker.
    pub(super) steers: bool,
    /// Whether one worker receives all of the port's frames.
    pub(super) keeps: bool,
    pub(crate) burst: Burst,
    pub(crate) account: Arc<Account>,
    pub(super) rate: Rate,
    /// Packets that the port does not take because of their length, until their senders are informed.
    pub(super) too_long: TooLong,
    pub(super) has_ended: bool,
    /// The frames of a burst that is being opened, of which the account knows nothing yet.
    unopened: usize,
}

/// A port as one worker drives it.
pub(crate) struct Driven {
    /// The port's name, for `-i` and `-o`.
    pub(crate) name: Arc<str>,
    pub(crate) port: BoxedPort,
    /// Whether received frames may belong to another worker.
    pub(crate) steers: bool,
    /// Whether one worker receives all of the port's frames.
    pub(crate) keeps: bool,
}

impl End {
    /// The end of a port that `workers` workers drive.
    pub(super) fn new(Driven { name, port, steers, keeps }: Driven, workers: usize) -> Self {
        Self {
            name,
            envelope: port.envelope(),
            port,
            leaves_whole: false,
            steers,
            keeps,
            burst: Burst::new(),
            account: Arc::default(),
            rate: Rate::of(workers),
            too_long: TooLong::default(),
            has_ended: false,
            unopened: 0,
        }
    }

    /// Receives a burst, to be opened; returns the number of frames.
    pub(crate) fn receive(&mut self) -> Result<usize, PortError> {
        let Self { port, burst, has_ended, .. } = self;
        if *has_ended {
            return Ok(0);
        }
        let received = match port.rx_burst(burst) {
            Err(error) if error.is_down() => 0,
            received => received?,
        };
        // A capture has nothing more then; a live port has nothing now, and says what to wait for.
        *has_ended =
            received == 0 && matches!(port.readiness(), Readiness::Always | Readiness::Never);
        Ok(received)
    }

    /// Decrypts received frames and restores their on-wire form; returns their number.
    pub(crate) fn open(&mut self, from: usize, tap: &mut Tap) -> usize {
        let Self { envelope, burst, account, leaves_whole, unopened, .. } = self;
        if let Some(envelope) = envelope {
            let mut meta = FrameMeta::default();
            *unopened = burst.len();
            envelope.open(burst, &mut |why, frame| {
                *unopened = unopened.saturating_sub(1);
                account.received(1);
                account.dropped(why.into(), 1);
                tap.dropped(from, why.into(), Some(shown(frame, &mut meta)));
            });
            *unopened = 0;
        }
        account.received(burst.len());
        as_on_a_link(burst, *leaves_whole);
        account.received_bytes(burst.bytes());
        burst.len()
    }

    /// Counts the frames of a burst whose opening has not come to an end, for a panic, as received.
    pub(crate) fn count_unopened(&mut self) {
        self.account.received(std::mem::take(&mut self.unopened));
    }

    /// Whether its frames come and leave in envelopes.
    pub(crate) fn has_envelopes(&self) -> bool {
        self.envelope.is_some()
    }

    /// Puts frames that the end `from` received, whose account it is, into envelopes if they need them; frames that are
    /// sealed already stay as they are.
    pub(crate) fn seal(
        &mut self,
        burst: &mut Burst,
        account: &Account,
        from: usize,
        tap: &mut Tap,
    ) -> usize {
        let Self { envelope: Some(envelope), too_long, .. } = self else { return 0 };
        let (before, mut lost) = (burst.len(), 0);
        let waiting = envelope.seal(burst, &mut |why, frame| {
            lost += 1;
            account.dropped(why.into(), 1);
            if let Lost::TooLong { most } = why {
                too_long.note(frame, most);
            }
            tap.dropped(from, why.into(), Some(frame));
        });
        account.sent(waiting);
        // Sealing makes several messages of a superframe.
        account.made((burst.len() + lost + waiting).saturating_sub(before));
        waiting
    }

    /// Transmits a burst that the end `from` received, whose account it is; returns the number of frames that the port
    /// took. The others are dropped.
    pub(super) fn transmit(
        &mut self,
        burst: &mut Burst,
        account: &Account,
        from: usize,
        tap: &mut Tap,
    ) -> Result<usize, PortError> {
        if burst.is_empty() {
            return Ok(0);
        }
        let bytes = burst.bytes();
        let waiting = self.seal(burst, account, from, tap);
        if self.envelope.is_none() {
            as_left_to_a_port(burst);
        }
        let (sent, why) = match self.port.tx_burst(burst) {
            Ok(sent) => (sent, Reason::TxFull),
            Err(error) if error.is_down() || error.is_gone() => (0, Reason::Device),
            Err(error) => return Err(error),
        };
        account.sent(sent);
        if burst.is_empty() {
            account.sent_bytes(bytes);
            return Ok(sent + waiting);
        }
        account.sent_bytes(bytes.saturating_sub(burst.bytes()));
        account.dropped(why, burst.len());
        burst.iter().for_each(|frame| tap.dropped(from, why, Some(frame)));
        burst.clear();
        Ok(sent + waiting)
    }
}

/// A frame as taps see it: of a sealed frame only the length, since its bytes cannot be read.
fn shown<'f>(frame: Frame<'f>, meta: &'f mut FrameMeta) -> Frame<'f> {
    if frame.meta.link_type != LinkType::SEALED {
        return frame;
    }
    let wire_length = frame.bytes.len() as u32;
    *meta = FrameMeta { link_type: LinkType::RAW, wire_length, ..*frame.meta };
    Frame { bytes: &[], meta }
}

/// The end of arrival of frames, and the end through which they leave.
pub(crate) fn ends_from(ends: &mut [End; 2], from: usize) -> [&mut End; 2] {
    let [first, second] = ends;
    if from == 0 { [first, second] } else { [second, first] }
}
