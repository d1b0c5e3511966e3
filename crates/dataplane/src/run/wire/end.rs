//! [`End`]: one end of a wire: its port, the frames that come in by it, and what is counted of them.
//!
//! Contract: one thread's own. A port whose link is down takes no frame and has none; what it does not take is dropped, as
//! by a card whose ring is full.

use std::sync::Arc;

use pktio::{Burst, Envelope, Frame, FrameMeta, LinkType, Lost, Port, PortError, Readiness};

use super::super::account::{Account, Reason};
use super::super::offload::{as_left_to_a_port, as_on_a_link};
use super::super::replies::Rate;
use super::super::taps::Tap;
use super::too_long::TooLong;

/// A port that a worker drives.
pub type BoxedPort = Box<dyn Port + Send>;

/// One end of a wire, with the frames that come in by it.
pub(in crate::run) struct End {
    pub(super) name: Arc<str>,
    pub(super) port: BoxedPort,
    /// What opens and seals its frames, if they need it.
    envelope: Option<Box<dyn Envelope>>,
    /// What finishes superframes that came in by it, the other end does.
    pub(super) leaves_whole: bool,
    /// What comes in by it may be another worker's.
    pub(super) steers: bool,
    /// All of it comes to one worker first.
    pub(super) keeps: bool,
    pub(in crate::run) burst: Burst,
    pub(in crate::run) account: Arc<Account>,
    pub(super) rate: Rate,
    /// What it does not take because of its length, until that is told.
    pub(super) too_long: TooLong,
    pub(super) has_ended: bool,
}

/// A port as one worker drives it.
pub(in crate::run) struct Driven {
    /// What `-i` and `-o` see.
    pub(in crate::run) name: Arc<str>,
    pub(in crate::run) port: BoxedPort,
    /// What comes in by it may be another worker's.
    pub(in crate::run) steers: bool,
    /// All of it comes to one worker first.
    pub(in crate::run) keeps: bool,
}

impl End {
    /// Of a port that so many workers drive.
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
        }
    }

    /// Receives a burst: how many frames came. They are to be opened.
    pub(in crate::run) fn receive(&mut self) -> Result<usize, PortError> {
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

    /// Makes of what was received what it was on a link, out of its envelopes: how many frames that is.
    pub(in crate::run) fn open(&mut self, from: usize, tap: &mut Tap) -> usize {
        let Self { envelope, burst, account, leaves_whole, .. } = self;
        if let Some(envelope) = envelope {
            let mut meta = FrameMeta::default();
            envelope.open(burst, &mut |why, frame| {
                account.received(1);
                account.dropped(why.into(), 1);
                tap.dropped(from, why.into(), Some(shown(frame, &mut meta)));
            });
        }
        account.received(burst.len());
        as_on_a_link(burst, *leaves_whole);
        account.received_bytes(burst.bytes());
        burst.len()
    }

    /// Whether its frames come and leave in envelopes.
    pub(in crate::run) fn has_envelopes(&self) -> bool {
        self.envelope.is_some()
    }

    /// Puts frames that came in by the end `from`, whose account it is, into envelopes if they need them; those that are in
    /// theirs stay as they are.
    pub(in crate::run) fn seal(
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
        // A superframe is several messages.
        account.made((burst.len() + lost + waiting).saturating_sub(before));
        waiting
    }

    /// Transmits a burst that came in by the end `from`, whose account it is: how many frames the port took. The others are
    /// dropped.
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

/// A frame as it is shown to who watches: of one that is sealed nothing can be read, and its bytes are nobody's.
fn shown<'f>(frame: Frame<'f>, meta: &'f mut FrameMeta) -> Frame<'f> {
    if frame.meta.link_type != LinkType::SEALED {
        return frame;
    }
    let wire_length = frame.bytes.len() as u32;
    *meta = FrameMeta { link_type: LinkType::RAW, wire_length, ..*frame.meta };
    Frame { bytes: &[], meta }
}

/// The end by which frames come in, and the one by which they leave.
pub(in crate::run) fn ends_from(ends: &mut [End; 2], from: usize) -> [&mut End; 2] {
    let [first, second] = ends;
    if from == 0 { [first, second] } else { [second, first] }
}
