//! What a peer has to do later, unless something happens first (WireGuard, section 6.5). A deadline is a time in
//! nanoseconds; events set and clear them, one store each.

use crate::limits::{KEEPALIVE_TIMEOUT, REKEY_TIMEOUT, SILENCE_TIMEOUT};

/// Deadlines of a peer, except those of its handshake and its sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timers {
    /// A handshake is wanted, as soon as the last initiation is [`REKEY_TIMEOUT`] ago.
    pub(crate) handshake: Option<u64>,
    /// Data was sent, and nothing was heard.
    pub(crate) silence: Option<u64>,
    /// Data was heard, and nothing was sent.
    pub(crate) keepalive: Option<u64>,
    /// Nothing was sent or heard for as long as the configuration says.
    pub(crate) persistent: Option<u64>,
    /// How long that is.
    pub(crate) interval: Option<u64>,
    /// When we sent the last initiation.
    initiated: Option<u64>,
}

impl Timers {
    pub(crate) fn new(interval: Option<u64>) -> Self {
        // At once: a peer that is to be reached has to know where we are.
        Self { interval, persistent: interval.map(|_| 0), ..Self::default() }
    }

    /// A handshake is wanted.
    pub(crate) fn want_handshake(&mut self, now: u64) {
        let soonest = self.initiated.map_or(0, |at| at.saturating_add(REKEY_TIMEOUT));
        self.handshake.get_or_insert(now.max(soonest));
    }

    pub(crate) fn initiation_sent(&mut self, now: u64) {
        self.initiated = Some(now);
        self.handshake = None;
        self.restart_persistent(now);
    }

    pub(crate) fn data_sent(&mut self, now: u64) {
        self.silence.get_or_insert(now.saturating_add(SILENCE_TIMEOUT));
        self.anything_sent(now);
    }

    /// Data, a keepalive or a response.
    pub(crate) fn anything_sent(&mut self, now: u64) {
        self.keepalive = None;
        self.restart_persistent(now);
    }

    /// Anything authentic: data, a keepalive or a handshake message.
    pub(crate) fn heard(&mut self, now: u64) {
        self.silence = None;
        self.restart_persistent(now);
    }

    /// A keepalive is no data, so it is not answered by another.
    pub(crate) fn data_received(&mut self, now: u64) {
        self.keepalive.get_or_insert(now.saturating_add(KEEPALIVE_TIMEOUT));
    }

    /// Keepalives go after this silence from now on; 0 for none. One that is due sooner stays due then: the first one, at once.
    pub(crate) fn set_interval(&mut self, interval: u64, now: u64) {
        self.interval = Some(interval).filter(|interval| *interval > 0);
        let due = self.persistent;
        self.restart_persistent(now);
        self.persistent = self.persistent.map(|next| due.map_or(next, |due| due.min(next)));
    }

    fn restart_persistent(&mut self, now: u64) {
        self.persistent = self.interval.map(|interval| now.saturating_add(interval));
    }

    /// The first deadline.
    pub(crate) fn first(&self) -> Option<u64> {
        let all = [self.handshake, self.silence, self.keepalive, self.persistent];
        all.into_iter().flatten().min()
    }

    /// Nobody answers: until there is something to send, nothing is done.
    pub(crate) fn rest(&mut self, now: u64) {
        (self.handshake, self.silence, self.keepalive) = (None, None, None);
        self.restart_persistent(now);
    }
}

/// Whether a deadline has come; it is cleared then.
pub(crate) fn comes(deadline: &mut Option<u64>, now: u64) -> bool {
    deadline.take_if(|at| *at <= now).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_interval_puts_no_keepalive_off() {
        let mut timers = Timers::new(Some(25));
        timers.set_interval(1, 100);
        assert_eq!(timers.persistent, Some(0), "the first one is due at once");
        timers.anything_sent(100);
        timers.set_interval(25, 100);
        assert_eq!(timers.persistent, Some(101));
        timers.set_interval(0, 100);
        assert_eq!(timers.persistent, None);
        timers.set_interval(2, 100);
        assert_eq!(timers.persistent, Some(102));
    }
}
