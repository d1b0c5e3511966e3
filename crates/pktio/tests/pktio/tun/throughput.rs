//! How much TCP goes through two joined devices, by who cuts it. A measurement, so it runs only when asked for:
//!
//! ```sh
//! cargo test --release -p tamis-pktio --test pktio throughput -- --ignored --nocapture
//! ```

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::joined::{Joined, Way};

const RUNS: usize = 5;
const LENGTH: Duration = Duration::from_secs(3);

/// Gbit/s of one connection, MTU 1,500, as the receiver counts it.
fn measure(way: Way) -> Option<f64> {
    let joined = Joined::new(way, 1500)?;
    let listener = joined.ends[1].run(|| TcpListener::bind("10.77.0.2:5001").unwrap());
    let receiver = thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let (began, mut bytes, mut room) = (Instant::now(), 0, vec![0; 256 << 10]);
        loop {
            match connection.read(&mut room).unwrap() {
                0 => return (bytes, began.elapsed()),
                length => bytes += length,
            }
        }
    });
    let mut connection = joined.ends[0].run(|| TcpStream::connect("10.77.0.2:5001").unwrap());
    let (began, chunk, mut sent) = (Instant::now(), vec![7; 256 << 10], 0);
    while began.elapsed() < LENGTH {
        connection.write_all(&chunk).unwrap();
        sent += chunk.len();
    }
    connection.shutdown(Shutdown::Write).unwrap();
    let (received, elapsed) = receiver.join().unwrap();
    assert_eq!(received, sent);
    joined.end();
    Some(received as f64 * 8.0 / elapsed.as_secs_f64() / 1e9)
}

/// Ways take turns, so that whatever else the machine does hits all of them.
#[test]
#[ignore = "a measurement"]
fn throughput() {
    const WAYS: [Way; 3] = [Way::Finished, Way::Whole, Way::Cut];
    let mut found = WAYS.map(|_| Vec::new());
    for _ in 0..RUNS {
        for (way, found) in WAYS.iter().zip(&mut found) {
            let Some(rate) = measure(*way) else { return };
            found.push(rate);
        }
    }
    for (way, found) in WAYS.iter().zip(&mut found) {
        found.sort_by(f64::total_cmp);
        println!("{way:?}: median {:.2} Gbit/s of {found:.2?}", found[RUNS / 2]);
    }
}
