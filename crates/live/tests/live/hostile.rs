//! Clients of the control socket that say nothing, too much, or go away: nobody waits for them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use live::{Request, Run};
use rules::ipset::Sets;
use serde_json::Value;

use super::lists::Served;
use super::{Rig, filter, received, send, syn};

/// Checks that frames pass, and that clients are answered.
fn goes_on(served: &mut Served, frames: &mut u64) {
    *frames += 1;
    send(&mut served.far[0], &[syn(80)]);
    served.has_received(*frames);
    assert_eq!(received(&mut served.far[1]), [syn(80)]);
}

fn connected(served: &Served) -> UnixStream {
    UnixStream::connect(&served.socket).expect("it listens")
}

/// The answer to these bytes of a client.
fn answered(served: &Served, bytes: &[u8]) -> Value {
    let mut client = connected(served);
    // A client that is refused in the middle of its line is not read to the end of it.
    let _ = client.write_all(bytes);
    let mut line = String::new();
    BufReader::new(&client).read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).expect("a document")
}

/// Sockets of the run: the listening socket, and one for each client.
fn sockets(served: &Served) -> usize {
    let path = served.socket.display().to_string();
    let all = fs::read_to_string("/proc/net/unix").expect("the kernel's list of sockets");
    all.lines().filter(|line| line.ends_with(&path)).count()
}

#[test]
fn nobody_waits_for_clients_that_say_nothing() {
    let mut served = Served::new("silent", "", 1, |_| {});
    let (mut frames, mut clients) = (0, Vec::new());
    for number in 0..1000 {
        let client = connected(&served);
        if number % 3 == 0 {
            let _ = (&client).write_all(b"{\"command\":");
        }
        clients.push(client);
        // The others are there for as long as the test has descriptors to spare.
        if clients.len() > 200 {
            clients.remove(0);
        }
        if number % 100 == 0 {
            goes_on(&mut served, &mut frames);
        }
    }
    goes_on(&mut served, &mut frames);
    // A byte at a time.
    let slow = connected(&served);
    let bytes = thread::spawn(move || {
        let line = b"{\"command\":\"status\"}\n";
        line.iter()
            .take_while(|byte| {
                thread::sleep(Duration::from_millis(100));
                (&slow).write_all(&[**byte]).is_ok()
            })
            .count()
    });
    for _ in 0..50 {
        goes_on(&mut served, &mut frames);
    }
    assert!(bytes.join().expect("no panic") < 21, "it had a second for its line");
    served.finish();
}

#[test]
fn nobody_waits_for_clients_that_do_not_read() {
    // Answers are longer than what a socket holds.
    let mut served = Served::new("unread", "", 1, |start| {
        let elements = (0..60_000_u32).map(|at| format!("add a {}\n", Ipv4Addr::from(at)));
        let text = format!("create a hash:ip\n{}", elements.collect::<String>());
        start.sets = Some(Sets::parse(&text).expect("sets"));
    });
    let (mut frames, mut clients) = (0, Vec::new());
    // More clients than are served at a time.
    let request = serde_json::to_string(&Request::SetsList { set: None, most: 60_000 }).unwrap();
    for _ in 0..40 {
        let mut client = connected(&served);
        let _ = client.write_all(request.as_bytes());
        let _ = client.write_all(b"\n");
        clients.push(client);
    }
    for _ in 0..20 {
        goes_on(&mut served, &mut frames);
    }
    drop(clients);
    goes_on(&mut served, &mut frames);
    served.finish();
}

#[test]
fn what_is_no_request_is_refused_with_the_reason() {
    let mut served = Served::new("wrong", "", 1, |_| {});
    let what =
        |bytes: &[u8]| answered(&served, bytes)["error"]["what"].as_str().unwrap().to_owned();
    assert_eq!(what(b"\xff\xfe\n"), "expected UTF-8");
    assert!(what(b"{\"command\":\"status\",\"full\":1}\n").contains("unknown field `full`"));
    assert!(what(b"{\"command\":\"dance\"}\n").contains("unknown variant `dance`"));
    assert!(what(b"\n").contains("EOF"));
    assert!(what(b"{\"command\":\"status\"").starts_with("expected a request within 1 s"));
    let huge = vec![b' '; (48 << 20) + 1];
    assert_eq!(what(&huge), format!("expected a request of {} bytes at most", 48 << 20));

    // Who ends its side has ended its line.
    let mut client = connected(&served);
    client.write_all(b"{\"command\":\"status\"}").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert!(text.starts_with('{') && text.contains("tamis.status/1"), "{text}");
    goes_on(&mut served, &mut 0);
    served.finish();
}

#[test]
fn clients_that_go_away_leave_nothing() {
    let mut served = Served::new("gone", "", 1, |_| {});
    let (mut frames, line) = (0, b"{\"command\":\"status\"}\n");
    goes_on(&mut served, &mut frames);
    for round in 0..500 {
        let mut client = connected(&served);
        let _ = client.write_all(&line[..round % (line.len() + 1)]);
        if round % 2 == 0 {
            let _ = client.shutdown(Shutdown::Read);
        }
    }
    goes_on(&mut served, &mut frames);
    // Those that owe their lines have a second for them.
    while sockets(&served) > 1 {
        thread::sleep(Duration::from_millis(10));
    }
    served.finish();
}

#[test]
fn a_socket_is_its_owners_and_stands_where_nobody_replaces_it() {
    let served = Served::new("mode", "", 1, |_| {});
    let mode = |path| fs::metadata(path).expect("it is there").permissions().mode();
    assert_eq!(mode(&served.socket) & 0o777, 0o600);
    let (socket, folder) = (served.socket.clone(), served.folder.clone());
    let controlled = || {
        let (run, _far) = Rig::new(&filter("ACCEPT", "")).start();
        let controlled = run.controlled(&socket).map(drop as fn(Run));
        controlled.map_err(|error| format!("{error:?}"))
    };
    assert!(controlled().expect_err("it is served").contains("another tamis listens there"));
    served.finish();

    fs::create_dir_all(&folder).expect("a folder");
    drop(UnixListener::bind(&socket).expect("a socket"));
    assert!(socket.exists(), "of one that is dead");
    controlled().expect("it is replaced");
    assert!(!socket.exists(), "it went with its run");

    for mode in [0o777, 0o775, 0o1777] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("a folder of ours");
        assert!(
            controlled().expect_err("others may write").contains("others may write to"),
            "{mode:o}"
        );
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a folder of ours");
    fs::write(&socket, "important").expect("a file");
    assert!(controlled().expect_err("it is none of ours").contains("expected a socket"));
    assert_eq!(fs::read_to_string(&socket).expect("it stays"), "important");
    fs::remove_dir_all(&folder).expect("removed");
}
