//! Which counters a session has opened: a ring of bits (RFC 6479), 8,192 of them. A word is given up when the ring
//! comes round to it, so the window proper is one word less: 8,128 counters up to the greatest, as in the kernel.

const WORDS: usize = 128;
const WORD: u64 = u64::BITS as u64;

/// What is accepted lies less than this below the greatest counter that was.
const SIZE: u64 = (WORDS as u64 - 1) * WORD;

/// The counters that were accepted.
#[derive(Clone, Debug)]
pub struct Window {
    /// One more than the greatest that was accepted.
    next: u64,
    bits: [u64; WORDS],
}

impl Default for Window {
    fn default() -> Self {
        Self { next: 0, bits: [0; WORDS] }
    }
}

impl Window {
    /// How far below the greatest a counter may lie.
    pub const SIZE: u64 = SIZE;

    /// Whether `counter` would be accepted. Asked before a datagram is opened, it spares opening what was replayed.
    /// [`u64::MAX`], which no session sends, never is.
    #[must_use]
    pub fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return counter != u64::MAX;
        }
        let (word, bit) = place(counter);
        self.next - counter <= SIZE && self.bits[word] & bit == 0
    }

    /// Accepts `counter` once, unless it lies too far back. Only a counter that was authenticated belongs here.
    pub fn accept(&mut self, counter: u64) -> bool {
        if !self.is_new(counter) {
            return false;
        }
        if counter >= self.next {
            self.clear_up_to(counter);
            self.next = counter + 1;
        }
        let (word, bit) = place(counter);
        self.bits[word] |= bit;
        true
    }

    /// Empties the words that `counter` makes the ring come round to.
    fn clear_up_to(&mut self, counter: u64) {
        // The word of the greatest so far stays; before the first there is none.
        let first = self.next.div_ceil(WORD);
        let last = counter / WORD;
        let words = (last + 1).saturating_sub(first).min(WORDS as u64);
        for word in 0..words {
            self.bits[((last - word) % WORDS as u64) as usize] = 0;
        }
    }
}

/// The word of a counter, and its bit.
fn place(counter: u64) -> (usize, u64) {
    (((counter / WORD) % WORDS as u64) as usize, 1 << (counter % WORD))
}

#[cfg(test)]
mod tests;
