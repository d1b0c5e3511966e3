//! [`Page`]: what a directory knows, for browsers on its host: nodes, paths, who may begin what with whom, and the log.
//!
//! Contract: it changes nothing, and can ask for nothing but an [`Overview`], by the control socket as every command does. One thread
//! of its own serves all clients: [`MOST`] at a time, each for [`PATIENCE`], so who is slow or silent costs a socket and holds
//! up nobody. The server is asked again once [`FRESH`] has passed, or [`SHARE`] times what it took, so that no client costs the network
//! more than a small part of its time. It is loopback's: nobody is asked who they are, and [`http`] refuses other names.

mod html;
mod http;
mod render;
mod verdict;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::control::{self, Request};
use crate::overview::Overview;
use http::{LONGEST, Status, Wanted};

/// Clients at a time; the oldest makes room for one more.
const MOST: usize = 32;
/// How long a client may take from its first byte to the last one of its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client that has its answer may still send.
const PARTING: Duration = Duration::from_secs(1);
/// How old an overview may be that is shown.
const FRESH: Duration = Duration::from_secs(1);
/// How many times what the server took for an overview passes before it is asked again.
const SHARE: u32 = 20;
/// How long nothing is looked at while nothing happens.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

const HTML: &str = "text/html";
const PLAIN: &str = "text/plain";
const STYLE: &str = include_str!("style.css");

/// A socket for browsers, and where the server is asked.
#[derive(Debug)]
pub(crate) struct Page {
    listener: TcpListener,
    control: PathBuf,
    clients: Vec<Client>,
    known: Option<Known>,
}

/// What was known, and until when that is shown.
#[derive(Debug)]
struct Known {
    overview: Overview,
    until: Instant,
}

#[derive(Debug)]
struct Client {
    stream: TcpStream,
    until: Instant,
    stage: Stage,
}

/// How far a client is.
#[derive(Debug)]
enum Stage {
    /// It owes the rest of its request.
    Asks(Vec<u8>),
    /// It is sent the rest of its answer.
    Reads(Vec<u8>, usize),
    /// What it still sends is read and dropped, so that the answer arrives.
    Parts,
    Gone,
}

impl Page {
    /// Listens at an address, for the page of the server that has this control socket.
    ///
    /// # Errors
    /// The address is not of this host, or not free.
    pub(crate) fn open(at: SocketAddr, control: &Path) -> Result<Self> {
        if !at.ip().is_loopback() {
            bail!("{at}: expected an address of loopback");
        }
        let listener = TcpListener::bind(at).with_context(|| format!("TCP {at}"))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, control: control.to_owned(), clients: Vec::new(), known: None })
    }

    /// Serves from now on, as long as the process runs.
    ///
    /// # Errors
    /// There are no threads left.
    pub(crate) fn start(mut self) -> Result<()> {
        let serve = move || {
            loop {
                self.turn();
            }
        };
        thread::Builder::new().name("page".to_owned()).spawn(serve).map(drop).context("the page")
    }

    fn turn(&mut self) {
        self.wait();
        self.accept();
        let now = Instant::now();
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            // Who took too long, or is not there any more, needs nothing.
            let is_well = client.until > now && self.carry(client).is_ok();
            if !is_well {
                client.stage = Stage::Gone;
            }
        }
        clients.retain(|client| !matches!(client.stage, Stage::Gone));
        self.clients = clients;
    }

    fn wait(&self) {
        let mut all = vec![PollFd::new(&self.listener, PollFlags::IN)];
        all.extend(self.clients.iter().map(|client| {
            let is_reading = matches!(client.stage, Stage::Reads(..));
            PollFd::new(&client.stream, if is_reading { PollFlags::OUT } else { PollFlags::IN })
        }));
        // After an error it is looked again, but not at once.
        if !matches!(poll(&mut all, Some(&TICK)), Ok(_) | Err(rustix::io::Errno::INTR)) {
            thread::sleep(PARTING);
        }
    }

    fn accept(&mut self) {
        for _ in 0..MOST {
            match self.listener.accept() {
                Ok((stream, _)) => self.begin(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // No descriptors are left: later there may be some.
                Err(_) => return thread::sleep(PARTING / 10),
            }
        }
    }

    fn begin(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.clients.len() >= MOST {
            self.clients.remove(0);
        }
        let (until, stage) = (Instant::now() + PATIENCE, Stage::Asks(Vec::new()));
        self.clients.push(Client { stream, until, stage });
    }

    /// Moves what can be moved.
    fn carry(&mut self, client: &mut Client) -> io::Result<()> {
        if let Stage::Asks(head) = &mut client.stage {
            if !client.stream.reads_more(head)? {
                return Ok(());
            }
            let answer = self.answer(head);
            client.stage = Stage::Reads(answer, 0);
        }
        if let Stage::Reads(answer, sent) = &mut client.stage {
            if !client.stream.sends_all(answer, sent)? {
                return Ok(());
            }
            client.stream.shutdown(Shutdown::Write)?;
            (client.stage, client.until) = (Stage::Parts, Instant::now() + PARTING);
        }
        if client.stream.has_ended()? {
            client.stage = Stage::Gone;
        }
        Ok(())
    }

    fn answer(&mut self, head: &[u8]) -> Vec<u8> {
        let wanted = if http::is_whole(head) { http::read(head) } else { Err(Status::TooLong) };
        let form = match wanted {
            Ok(Wanted::Style) => return http::answer(Status::Ok, "text/css", STYLE),
            Ok(Wanted::Page(form)) => form,
            Err(status) => return http::answer(status, PLAIN, status.explanation()),
        };
        match self.overview() {
            Ok(overview) => http::answer(Status::Ok, HTML, &render::page(overview, &form)),
            Err(error) => {
                let text = format!("{}{error:#}\n", Status::Unavailable.explanation());
                http::answer(Status::Unavailable, PLAIN, &packet::visible::text(&text))
            }
        }
    }

    /// What the server knows, or knew a moment ago.
    fn overview(&mut self) -> Result<&Overview> {
        let start = Instant::now();
        let known = match self.known.take().filter(|known| known.until > start) {
            Some(known) => known,
            None => {
                let answer = control::ask(&self.control, &Request::Overview {})?;
                let overview = serde_json::from_value(answer).context("the server's answer")?;
                let until = Instant::now() + FRESH.max(start.elapsed() * SHARE);
                Known { overview, until }
            }
        };
        Ok(&self.known.insert(known).overview)
    }
}

/// What a client's socket does without waiting.
trait Carries {
    /// Reads more of a request; whether it is there as a whole, or is too long.
    fn reads_more(&mut self, head: &mut Vec<u8>) -> io::Result<bool>;

    /// Sends the rest of an answer; whether that was all.
    fn sends_all(&mut self, answer: &[u8], sent: &mut usize) -> io::Result<bool>;

    /// Drops what came; whether the client has closed.
    fn has_ended(&mut self) -> io::Result<bool>;
}

impl Carries for TcpStream {
    fn reads_more(&mut self, head: &mut Vec<u8>) -> io::Result<bool> {
        let mut some = [0; 1024];
        while head.len() <= LONGEST && !http::is_whole(head) {
            match self.read(&mut some) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => head.extend_from_slice(&some[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn sends_all(&mut self, answer: &[u8], sent: &mut usize) -> io::Result<bool> {
        while let Some(rest) = answer.get(*sent..).filter(|rest| !rest.is_empty()) {
            match self.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(more) => *sent += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn has_ended(&mut self) -> io::Result<bool> {
        let mut some = [0; 4096];
        for _ in 0..4 {
            match self.read(&mut some) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
