//! `meta mark set` and `ct mark set`.
//!
//! What the value is read of may be missing, which ends the rule. A packet without a connection keeps what it has.
//! Source: kernel `net/netfilter/nft_meta.c`, `nft_ct.c`.

use super::{Act, Next};
use crate::lower::read::Loads;
use crate::lower::word::{Loaded, Word};
use packet::Mark;
use rules::Transit;

/// The mark of the packet, or of its connection.
#[derive(Debug)]
pub(crate) struct SetMark {
    pub value: Loads,
    pub of_connection: bool,
}

/// A value of 32 bits of which everything is known that all its values have in common.
fn joined(loaded: &Loaded) -> Option<Mark> {
    let mark = |word: &Word| {
        let unknown = word.unknown as u32;
        Mark { value: word.value as u32 & !unknown, unknown }
    };
    loaded.words.iter().map(mark).reduce(Mark::join)
}

impl Act for SetMark {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        let loaded = self.value.load(transit);
        let Some(mark) = joined(&loaded) else { return Next::Ends };
        let certain = transit.certain;
        transit.certain &= !loaded.breaks;
        if self.of_connection {
            let known = transit.certain && mark.unknown == 0;
            transit.ct.change(known, |flow| flow.mark = mark.value);
        } else {
            transit.set_mark(mark);
        }
        transit.certain = certain;
        if loaded.breaks { Next::MayEnd } else { Next::On }
    }

    fn may_end(&self) -> bool {
        !self.value.always()
    }

    fn lacks(&self) -> Option<&str> {
        self.value.lacks()
    }

    fn tracks(&self) -> bool {
        self.of_connection || self.value.tracks()
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        self.value.bytecode(show);
    }
}
