//! `tamis parent` as a run that was taken over would use it: by its socket alone.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use crate::devices::comes_true;
use crate::ran::TAMIS;

/// It, and the other end of its socket.
struct Parent {
    process: Child,
    socket: Option<OwnedFd>,
}

impl Parent {
    fn start() -> Self {
        let (own, its) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let patience = std::time::Duration::from_secs(30);
        set_socket_timeout(&own, Timeout::Recv, Some(patience)).unwrap();
        let mut command = Command::new(TAMIS);
        command.args(["parent", "--link=tamis-none*", "--tun=tamis-t%d"]).stdin(its);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        drop(command);
        let parent = Self { process, socket: Some(own) };
        assert_eq!(parent.answer(), [1], "it is there");
        parent
    }

    fn ask(&self, bytes: &[u8]) {
        send(self.socket.as_ref().unwrap(), bytes, SendFlags::NOSIGNAL).unwrap();
    }

    /// The next message, empty once it has closed its end.
    fn answer(&self) -> Vec<u8> {
        let mut bytes = [0; 256];
        let (length, _) =
            recv(self.socket.as_ref().unwrap(), &mut bytes, RecvFlags::empty()).unwrap();
        bytes[..length].to_vec()
    }

    #[track_caller]
    fn ends(&mut self, well: bool) {
        comes_true("it ends", || match self.process.try_wait().unwrap() {
            Some(status) => {
                assert_eq!(status.success(), well, "{status}");
                true
            }
            None => false,
        });
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const REFUSED: &[u8] = b"\0not in the configuration";

#[test]
fn it_refuses_what_is_not_in_the_configuration_and_goes_on() {
    let mut parent = Parent::start();
    for request in ["p", "ulo", "deth0", "ulo/tamis-none", "qlo", "otamis-t1/2", "qtamis-t%dx"] {
        parent.ask(request.as_bytes());
        assert_eq!(parent.answer(), REFUSED, "{request}");
    }
    // What is in it is tried: there is no such device.
    parent.ask(b"utamis-none0");
    let tried = parent.answer();
    assert!(tried.starts_with(&[0]) && tried != REFUSED, "{tried:?}");
    parent.socket = None;
    parent.ends(true);
}

#[test]
fn it_ends_over_what_is_no_request() {
    for bytes in [b"x".as_slice(), b"pp", b"u", b"u\xff", &[b'u'; 17], &[b'u'; 200]] {
        let mut parent = Parent::start();
        parent.ask(bytes);
        assert!(parent.answer().is_empty(), "{bytes:?}");
        parent.ends(false);
    }
}
