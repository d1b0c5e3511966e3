//! Jobs on other threads: sealed and opened in any order, released in that of staging.

use tunnel::{Content, HEADROOM, Opened, Opening, Received, Sealing, Staged, TAILROOM};

use crate::ends::*;

fn is_a_workers<T: Send + Sync>() {}

#[test]
fn jobs_may_be_any_threads() {
    is_a_workers::<Sealing>();
    is_a_workers::<Opening>();
    is_a_workers::<Opened>();
}

#[test]
fn workers_seal_and_open_in_parallel_and_order_is_that_of_staging() {
    const PACKETS: u64 = 2_000;
    let mut pair = Pair::established();
    let staged: Vec<(Sealing, Vec<u8>)> = (0..PACKETS)
        .map(|number| {
            let packet = Pair::packet(1, number);
            let Staged::Seal(sealing) = pair.a.stage(&packet, pair.now) else { panic!("waits") };
            (sealing, [vec![0; HEADROOM], packet, vec![0; TAILROOM]].concat())
        })
        .collect();
    let sealed = in_parallel(staged, |(sealing, mut buffer)| {
        let end = buffer.len() - TAILROOM;
        let range = sealing.seal(&mut buffer, HEADROOM..end).unwrap();
        buffer[range].to_vec()
    });
    let staged = sealed.into_iter().map(|datagram| {
        let Received::Opening(opening) = pair.b.receive(&datagram, place(1), pair.now) else {
            panic!("not staged")
        };
        (opening, datagram)
    });
    let opened = in_parallel(staged.collect(), |(opening, mut datagram)| {
        (opening.open(&mut datagram).unwrap(), datagram)
    });
    for (expected, (opened, datagram)) in opened.into_iter().enumerate() {
        let delivered = pair.b.release(opened, &datagram, pair.now).unwrap();
        let Ok(Content::Packet(packet)) = delivered.content else { panic!("no packet") };
        assert_eq!(number(&datagram[packet]), expected as u64);
    }
}

/// What `work` makes of each job, by four threads that each have every fourth, in the order of jobs.
fn in_parallel<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let mut shares: Vec<Vec<(usize, J)>> = (0..4).map(|_| Vec::new()).collect();
    jobs.into_iter().enumerate().for_each(|(n, job)| shares[n % 4].push((n, job)));
    let work = &work;
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = shares
            .into_iter()
            .map(|share| {
                scope.spawn(move || {
                    share.into_iter().map(|(n, job)| (n, work(job))).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}
