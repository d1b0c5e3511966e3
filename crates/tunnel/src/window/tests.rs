//! The window against a set that forgets nothing, and the cases of the kernel's own test in other words
//! (`drivers/net/wireguard/selftest/counter.c`).

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// All counters that were accepted, and the greatest.
#[derive(Default)]
struct Naive {
    seen: HashSet<u64>,
    next: u64,
}

impl Naive {
    fn is_new(&self, counter: u64) -> bool {
        let in_reach = u128::from(counter) + u128::from(SIZE) >= u128::from(self.next);
        in_reach && counter != u64::MAX && !self.seen.contains(&counter)
    }

    fn accept(&mut self, counter: u64) -> bool {
        let fresh = self.is_new(counter);
        if fresh {
            self.seen.insert(counter);
            self.next = self.next.max(counter + 1);
        }
        fresh
    }
}

/// Steps that stay near the edges of words and of the window, and leaps.
fn steps() -> impl Strategy<Value = Vec<(bool, u64)>> {
    let distance = prop_oneof![
        0..4_u64,
        60..70_u64,
        SIZE - 3..SIZE + 3,
        SIZE + WORD - 3..SIZE + WORD + 3,
        2 * SIZE..2 * SIZE + 200,
        Just(1 << 32),
        Just(1 << 62),
        0..3 * SIZE,
    ];
    proptest::collection::vec((any::<bool>(), distance), 1..300)
}

proptest! {
    #[test]
    fn the_ring_accepts_what_a_set_accepts(start in any::<u64>(), steps in steps()) {
        let (mut window, mut naive) = (Window::default(), Naive::default());
        let mut at = start;
        for (back, distance) in steps {
            let counter =
                if back { at.saturating_sub(distance) } else { at.saturating_add(distance) };
            prop_assert_eq!(window.is_new(counter), naive.is_new(counter));
            let accepted = naive.accept(counter);
            prop_assert_eq!(window.accept(counter), accepted, "{} after {}", counter, at);
            at = counter.max(at);
        }
    }
}

fn all(counters: impl IntoIterator<Item = u64>, accepted: bool) -> impl FnOnce(&mut Window) {
    move |window| {
        for counter in counters {
            assert_eq!(window.accept(counter), accepted, "{counter}");
        }
    }
}

#[test]
fn kernel_first_counters() {
    let mut window = Window::default();
    for (counter, accepted) in [
        (0, true),
        (1, true),
        (1, false),
        (9, true),
        (8, true),
        (7, true),
        (7, false),
        (SIZE, true),
        (SIZE - 1, true),
        (SIZE - 1, false),
        (SIZE - 2, true),
        (SIZE + 1, true),
        (2, true),
        (2, false),
        (SIZE + 16, true),
        (3, false),
        (SIZE + 16, false),
        (SIZE * 4, true),
        (SIZE * 4 - (SIZE - 1), true),
        (10, false),
        (SIZE * 4 - SIZE, false),
        (SIZE * 4 - (SIZE + 1), false),
        (SIZE * 4 - (SIZE - 2), true),
        (SIZE * 4 + 1 - SIZE, false),
        (0, false),
    ] {
        assert_eq!(window.accept(counter), accepted, "{counter}");
    }
}

#[test]
fn kernel_the_last_counters() {
    let mut window = Window::default();
    for (counter, accepted) in [
        (u64::MAX, false),
        (u64::MAX - 1, true),
        (u64::MAX, false),
        (u64::MAX - 1, false),
        (u64::MAX - 2, true),
        (u64::MAX - 3, true),
        (u64::MAX - 3, false),
        (0, false),
    ] {
        assert_eq!(window.accept(counter), accepted, "{counter}");
    }
}

#[test]
fn kernel_whole_windows_up_and_down() {
    let mut window = Window::default();
    all(1..SIZE, true)(&mut window);
    all([0], true)(&mut window);
    all([0], false)(&mut window);

    let mut window = Window::default();
    all(2..=SIZE, true)(&mut window);
    all([1], true)(&mut window);
    all([0], false)(&mut window);

    let mut window = Window::default();
    all((0..SIZE).rev(), true)(&mut window);

    let mut window = Window::default();
    all([SIZE], true)(&mut window);
    all((1..SIZE).rev(), true)(&mut window);

    let mut window = Window::default();
    all((2..SIZE + 2).rev(), true)(&mut window);
    all([0], false)(&mut window);

    let mut window = Window::default();
    all(0..SIZE, true)(&mut window);
    all([SIZE + 1, SIZE], true)(&mut window);
    all([SIZE - 1], false)(&mut window);
}

#[test]
fn a_leap_over_the_whole_ring_leaves_nothing_behind() {
    let mut window = Window::default();
    all(0..SIZE, true)(&mut window);
    all([10 * SIZE], true)(&mut window);
    all(10 * SIZE - SIZE + 1..10 * SIZE, true)(&mut window);
}
