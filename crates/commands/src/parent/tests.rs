//! What a run asks, and which answers it takes, where the other end of the socket is the test's.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use pktio::Opener;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};

use super::message::{Answer, Request, answer, receive};
use super::process::{PATIENCE, Parent};

/// A parent whose part the holder of the other end plays; a request waits no longer than this for an answer.
fn asked(patience: Duration) -> (Parent, OwnedFd) {
    // Before there is a socket that it could have, too.
    let process = Command::new("true").spawn().expect("some process");
    let flags = SocketFlags::CLOEXEC;
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let (own, its) = pair.expect("two ends");
    set_socket_timeout(&own, Timeout::Recv, Some(patience)).expect("a timeout");
    let (socket, is_lost) = (Mutex::new(own), AtomicBool::new(false));
    (Parent { socket, is_lost, _process: process }, its)
}

/// The name of the next request's link; `None` once nobody asks any more.
fn link_asked_for(socket: &OwnedFd) -> Option<String> {
    let mut bytes = [0; 64];
    let (length, _) = receive(socket, &mut bytes).expect("a message");
    match Request::parse(&bytes[..length])? {
        Request::SetUp { name, .. } => Some(name.to_owned()),
        other => panic!("{other:?}"),
    }
}

fn refused(name: String) -> Answer {
    Err(name)
}

#[test]
fn each_of_several_threads_gets_the_answer_to_its_own_request() {
    let (parent, its) = asked(PATIENCE);
    let answering = thread::spawn(move || {
        while let Some(name) = link_asked_for(&its) {
            answer(&its, &refused(name)).expect("it is waited for");
        }
    });
    thread::scope(|scope| {
        for name in ["one", "two"] {
            let parent = &parent;
            scope.spawn(move || {
                for _ in 0..500 {
                    let told = parent.set_up(name, true).expect_err("all are refused");
                    assert_eq!(told.to_string(), name);
                }
            });
        }
    });
    drop(parent);
    answering.join().expect("it saw the end");
}

#[test]
fn an_answer_that_comes_too_late_is_not_taken_for_the_next_one() {
    let (parent, its) = asked(Duration::from_millis(1));
    assert!(parent.set_up("one", true).is_err(), "nobody answers");
    assert_eq!(link_asked_for(&its).as_deref(), Some("one"));
    answer(&its, &Ok((Vec::new(), String::new()))).expect("its end is open");
    let told = parent.set_up("two", true).expect_err("it is asked no more");
    assert_eq!(told.kind(), ErrorKind::BrokenPipe);
    assert!(!parent.is_there());
}

#[test]
fn the_end_of_the_other_process_is_noticed() {
    let (parent, its) = asked(PATIENCE);
    assert!(parent.is_there());
    // As closing it does, whatever other process another test is just starting with it.
    shutdown(&its, Shutdown::Both).expect("it is open");
    assert!(!parent.is_there());
    assert!(parent.packet_socket().is_err());
}
