//! Real threads at once: what they have one of adds up to what one worker would have let through, and a change is seen
//! by all that look afterwards.

use std::net::Ipv4Addr;
use std::sync::Barrier;
use std::thread;

use access::list::{Action, Block, Change};
use dataplane::FinalVerdict;
use dataplane::publish::{Published, Worker};
use packet::craft::Message;
use packet::tcp::Flags;

use super::{frame, published, verdict};

const THREADS: u8 = 4;
const NOW: u64 = 1_700_000_000_000_000_000;

/// A thread's worker.
struct Taker<'a> {
    worker: Worker,
    number: u64,
    barrier: &'a Barrier,
}

impl Taker<'_> {
    fn passes(&mut self, client: [u8; 4], message: Message) -> bool {
        self.number += 1;
        let verdict =
            verdict(&mut self.worker.burst(), frame(client, message, false), (self.number, NOW));
        assert!(!matches!(verdict, FinalVerdict::Unknown | FinalVerdict::Skip(_)), "{verdict:?}");
        matches!(verdict, FinalVerdict::Accept(_))
    }
}

/// What each of the threads adds up, in their order.
fn in_threads<R: Send>(
    published: &Published,
    work: impl Fn(u8, &mut Taker<'_>) -> R + Sync,
) -> Vec<R> {
    let barrier = Barrier::new(THREADS.into());
    let start = |thread| {
        let mut taker = Taker { worker: published.worker(), number: 0, barrier: &barrier };
        barrier.wait();
        let done = work(thread, &mut taker);
        (done, taker.worker)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|at| scope.spawn(move || start(at))).collect();
        let done: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        // Connections end with their worker: none goes before all are done.
        done.into_iter().map(|(done, _worker)| done).collect()
    })
}

/// Packets of many clients that pass a rule, each thread's own and all from one client.
fn passed(rules: &str, packets: u16) -> u64 {
    let published = published(rules, "", None);
    let count = |_, taker: &mut Taker<'_>| {
        let pass = |port| u64::from(taker.passes([10, 0, 0, 1], Message::udp(port, 53)));
        (1..=packets).map(pass).sum::<u64>()
    };
    in_threads(&published, count).into_iter().sum()
}

#[test]
fn a_limit_lets_through_as_many_as_for_one_worker() {
    assert_eq!(
        passed("-A FORWARD -m limit --limit 1/hour --limit-burst 1000 -j ACCEPT\n", 3000),
        1000
    );
}

#[test]
fn every_third_of_all_packets_is_counted() {
    let rules = "-A FORWARD -m statistic --mode nth --every 3 --packet 0 -j ACCEPT\n";
    // Each alone would have let 334 through.
    assert_eq!(passed(rules, 1001), 1335);
}

#[test]
fn an_address_is_seen_as_often_as_all_threads_see_it() {
    let rules = "-A FORWARD -m recent --name L --update --seconds 60 --hitcount 16 -j DROP\n\
                 -A FORWARD -m recent --name L --set -j ACCEPT\n";
    // Entered with its first packet; each that passes after that comes on top.
    let alone = {
        let published = published(rules, "", None);
        let barrier = Barrier::new(1);
        let mut taker = Taker { worker: published.worker(), number: 0, barrier: &barrier };
        let pass = |port| u64::from(taker.passes([10, 0, 0, 1], Message::udp(port, 53)));
        (1..=2000).map(pass).sum::<u64>()
    };
    // Between the two rules, as in the kernel, each of the others may have passed the first one, too.
    let together = passed(rules, 500);
    assert!((alone..alone + u64::from(THREADS)).contains(&together), "{together}, alone {alone}");
    assert!((1..2000).contains(&alone), "{alone}");
}

#[test]
fn connections_of_all_threads_count() {
    let rules = "-A FORWARD -p tcp --syn -m connlimit --connlimit-above 50 -j DROP\n-A FORWARD -p tcp -j ACCEPT\n";
    let published = published(rules, "", None);
    let open = |thread: u8, taker: &mut Taker<'_>| {
        let ports = (1..=100).map(|port| u16::from(thread) * 1000 + port);
        let open =
            |port| u64::from(taker.passes([10, 0, 0, 1], Message::tcp(port, 80, Flags::SYN)));
        ports.map(open).sum::<u64>()
    };
    assert_eq!(in_threads(&published, open).into_iter().sum::<u64>(), 50);
}

#[test]
fn what_one_adds_to_a_set_all_find_and_nothing_is_lost() {
    const ROUNDS: u16 = 500;
    let rules = "-A FORWARD -p udp -m udp --dport 1 -j SET --add-set s src\n\
                 -A FORWARD -p udp -m udp --dport 2 -j SET --del-set s src\n\
                 -A FORWARD -p udp -m udp --dport 3 -m set --match-set s src -j ACCEPT\n\
                 -A FORWARD -p udp -m udp --dport 4 -m set --match-set c src -j ACCEPT\n";
    let sets = "create s hash:ip family inet timeout 60\ncreate c hash:ip family inet counters\n\
                add c 10.9.9.9 packets 0 bytes 0\n";
    let published = published(rules, sets, None);
    let client = |thread: u8, round: u16| {
        let [high, low] = round.to_be_bytes();
        [10, thread, high, low]
    };
    in_threads(&published, |thread, taker| {
        for round in 0..ROUNDS {
            taker.passes(client(thread, round), Message::udp(5000, 1));
            taker.barrier.wait();
            let found = |other| taker.passes(client(other, round), Message::udp(5000, 3));
            assert!((0..THREADS).all(found), "added in round {round}");
            assert!(taker.passes([10, 9, 9, 9], Message::udp(u16::from(thread) + 1, 4)));
            taker.barrier.wait();
            if round % 2 == 0 {
                // Another's.
                let other = (thread + 1) % THREADS;
                taker.passes(client(other, round), Message::udp(5001, 2));
                taker.barrier.wait();
                assert!(!taker.passes(client(thread, round), Message::udp(5001, 3)), "{round}");
            }
        }
    });
    let shared = published.shared();
    let sets = shared.sets().unwrap();
    assert_eq!(sets.elements("s"), Some(usize::from(THREADS) * usize::from(ROUNDS / 2)));
}

#[test]
fn hits_of_all_threads_are_counted_in_a_set() {
    let rules = "-A FORWARD -m set --match-set c src --packets-lt 1001 -j ACCEPT\n";
    let sets = "create c hash:ip family inet counters\nadd c 10.0.0.1 packets 0 bytes 0\n";
    let published = published(rules, sets, None);
    let count = |_, taker: &mut Taker<'_>| {
        let pass = |port| u64::from(taker.passes([10, 0, 0, 1], Message::udp(port, 53)));
        (1..=1000).map(pass).sum::<u64>()
    };
    assert_eq!(in_threads(&published, count).into_iter().sum::<u64>(), 1000);
}

#[test]
fn a_ban_holds_for_all_with_their_next_packet() {
    let published = published("-A FORWARD -j ACCEPT\n", "", None);
    let source = Block::parse("10.0.0.0/8").unwrap();
    in_threads(&published, |thread, taker| {
        let (client, message) = (Ipv4Addr::new(10, 0, 0, thread).octets(), Message::udp(1, 2));
        for round in 0..400_u16 {
            let action = if round % 2 == 0 { Action::Ban } else { Action::Unban };
            if u16::from(thread) == round % u16::from(THREADS) {
                let change = Change { action, source, destination: None };
                published.shared().bans().update_all(&[change]);
            }
            taker.barrier.wait();
            assert_eq!(taker.passes(client, message.clone()), action == Action::Unban, "{round}");
            taker.barrier.wait();
        }
    });
}
