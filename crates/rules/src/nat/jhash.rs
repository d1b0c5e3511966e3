//! Bob Jenkins' `lookup3` hash over 32-bit words (public domain, 2006), by which the kernel picks one address
//! of a range, the node of a cluster, and `-j HMARK` a mark.

/// The hash of words.
pub(crate) fn jhash2(words: &[u32], seed: u32) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add((words.len() as u32) << 2).wrapping_add(seed);
    let mut state = [start; 3];
    let mut rest = words;
    while let ([a, b, c, tail @ ..], true) = (rest, rest.len() > 3) {
        add(&mut state, [*a, *b, *c]);
        mix(&mut state);
        rest = tail;
    }
    let word = |index: usize| rest.get(index).copied().unwrap_or(0);
    if !rest.is_empty() {
        add(&mut state, [word(0), word(1), word(2)]);
        finish(&mut state);
    }
    state[2]
}

fn add(state: &mut [u32; 3], words: [u32; 3]) {
    for (sum, word) in state.iter_mut().zip(words) {
        *sum = sum.wrapping_add(word);
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    for rotations in [[4, 6, 8], [16, 19, 4]] {
        *a = a.wrapping_sub(*c) ^ c.rotate_left(rotations[0]);
        *c = c.wrapping_add(*b);
        *b = b.wrapping_sub(*a) ^ a.rotate_left(rotations[1]);
        *a = a.wrapping_add(*c);
        *c = c.wrapping_sub(*b) ^ b.rotate_left(rotations[2]);
        *b = b.wrapping_add(*a);
    }
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |to: &mut u32, from: u32, by: u32| {
        *to = (*to ^ from).wrapping_sub(from.rotate_left(by));
    };
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

#[cfg(test)]
mod tests {
    use super::jhash2;

    /// `hashword` of lookup3.c: no words give the start value; the driver's word-wise and byte-wise hashes of
    /// one text agree, so "Four score and seven years ago" (its first 28 bytes) stands for the rest.
    #[test]
    fn the_hash_of_nothing_is_the_start() {
        assert_eq!(jhash2(&[], 0), 0xdead_beef);
        assert_eq!(jhash2(&[], 0xdead_beef), 0xbd5b_7dde);
    }
}
