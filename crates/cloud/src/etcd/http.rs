//! As much of HTTP/1.0 as etcd's gateway takes: one request with JSON, one answer, and the connection ends.
//!
//! Contract: an answer has at most [`LONGEST`] bytes and is there within [`PATIENCE`], or there is none. One that is cut short is none.
//!
//! Source: RFC 1945; `Content-Length` as in RFC 9110, where it is said.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Bytes of the longest answer.
const LONGEST: usize = 32 << 20;
/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// How long one server may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks a server, `HOST:PORT`; returns the status and the body of its answer.
///
/// # Errors
/// Why there is no answer.
pub(super) fn post(at: &str, path: &str, body: &str) -> Result<(u16, String), String> {
    let until = Instant::now() + PATIENCE;
    let mut stream = connected(at, until)?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: {at}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let write = |stream: &mut TcpStream| {
        stream.set_write_timeout(Some(left(until)?))?;
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    };
    write(&mut stream).map_err(shown)?;
    let (mut answer, mut piece) = (Vec::new(), vec![0; PIECE]);
    loop {
        let read = left(until).and_then(|left| stream.set_read_timeout(Some(left)));
        read.map_err(shown)?;
        match stream.read(&mut piece) {
            Ok(0) => return parsed(&answer),
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(shown(error)),
        }
        if answer.len() > LONGEST {
            return Err(format!("an answer of more than {LONGEST} bytes"));
        }
    }
}

fn connected(at: &str, until: Instant) -> Result<TcpStream, String> {
    let mut why = "no address".to_owned();
    for address in at.to_socket_addrs().map_err(shown)? {
        match left(until).and_then(|left| TcpStream::connect_timeout(&address, left)) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = shown(error),
        }
    }
    Err(why)
}

/// The time that is left.
fn left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn shown(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "it does not answer".to_owned(),
        _ => error.to_string(),
    }
}

/// The status and the body of an answer.
fn parsed(answer: &[u8]) -> Result<(u16, String), String> {
    let no_answer = || "expected an answer of HTTP".to_owned();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").ok_or_else(no_answer)?;
    let head = std::str::from_utf8(&answer[..end]).map_err(|_| no_answer())?;
    let body = &answer[end + 4..];
    let mut lines = head.split("\r\n");
    let first = lines.next().and_then(|line| line.strip_prefix("HTTP/1."));
    let status = first.and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or_else(no_answer)?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    match length {
        Some(Ok(length)) if length == body.len() => {}
        Some(_) => return Err("an answer that is cut short".to_owned()),
        None => {}
    }
    let body = std::str::from_utf8(body).map_err(|_| no_answer())?;
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn an_answer_is_whole_or_none() {
        let whole = parsed(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        assert_eq!(whole, Ok((200, "{}".to_owned())));
        assert_eq!(parsed(b"HTTP/1.1 503 No\r\n\r\nx"), Ok((503, "x".to_owned())));
        let cut = Err("an answer that is cut short".to_owned());
        for length in ["3", "1", "x", "-2"] {
            let text = format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n{{}}");
            assert_eq!(parsed(text.as_bytes()), cut, "{length}");
        }
        for text in ["", "\r\n\r\n", "HTTP/1.0\r\n\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.0 ok\r\n\r\n"] {
            assert!(parsed(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parsed(b"HTTP/1.0 200 OK\r\n\r\n\xff").is_err());
    }

    /// What a server that says this is taken to say.
    fn served(says: impl FnOnce(TcpStream) + Send + 'static) -> Result<(u16, String), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let serving = thread::spawn(move || says(listener.accept().unwrap().0));
        let answer = post(&at, "/v3/kv/range", "{}");
        serving.join().unwrap();
        answer
    }

    #[test]
    fn a_server_may_say_anything() {
        let hears = |stream: &mut TcpStream| {
            let mut heard = [0; 500];
            let length = stream.read(&mut heard).unwrap();
            assert!(heard[..length].starts_with(b"POST /v3/kv/range HTTP/1.0\r\n"));
        };
        let good = served(move |mut stream| {
            hears(&mut stream);
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n{\"count\":").unwrap();
            stream.write_all(b"\"1\"}").unwrap();
        });
        assert_eq!(good, Ok((200, "{\"count\":\"1\"}".to_owned())));
        let endless = served(move |mut stream| {
            let piece = vec![b'x'; 1 << 20];
            while stream.write_all(&piece).is_ok() {}
        });
        assert_eq!(endless, Err(format!("an answer of more than {LONGEST} bytes")));
        let silent = served(|mut stream| drop(stream.read_to_end(&mut Vec::new())));
        assert_eq!(silent, Err("it does not answer".to_owned()));
    }
}
