//! As much of HTTP/1.1 as the page takes: the head of one request, one answer.
//!
//! Contract: a head has at most [`LONGEST`] bytes; of it the first line and the field Host are looked at. A browser that was led here
//! by another name (DNS rebinding) sends that name and is refused, so no page of another site reads this one. What is not
//! understood is refused, never guessed.
//!
//! Source: RFC 9110, RFC 9112; RFC 3986, 2.1, and the URL standard's form encoding for what a form asks.

use std::net::IpAddr;

/// Bytes of a request's head.
pub(super) const LONGEST: usize = 8 * 1024;

/// Fields of every answer: no script runs, no other site frames, embeds or keeps anything.
const FIELDS: &str = "Content-Security-Policy: default-src 'none'; style-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\n\
     Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
     Cache-Control: no-store\r\nConnection: close\r\n";

/// What a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The page, and what its form asks.
    Page(Form),
    /// The style sheet.
    Style,
}

/// What the form asks: may this node begin something with that node, at this port?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) port: String,
}

impl Form {
    /// Whether nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.from.is_empty() && self.to.is_empty() && self.port.is_empty()
    }
}

/// The status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    BadRequest,
    NotFound,
    NotAllowed,
    TooLong,
    Misdirected,
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::NotAllowed => "405 Method Not Allowed\r\nAllow: GET",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::Misdirected => "421 Misdirected Request",
            Self::Unavailable => "503 Service Unavailable",
        }
    }

    /// What a person reads who gets it.
    pub(super) fn explanation(self) -> &'static str {
        match self {
            Self::Ok => "",
            Self::BadRequest => "expected GET /, with from, to and port at most once each\n",
            Self::NotFound => "expected GET / or GET /style.css\n",
            Self::NotAllowed => "expected GET: nothing can be changed here\n",
            Self::TooLong => "expected a request of at most 8 KiB\n",
            Self::Misdirected => "expected localhost or an address of loopback in the field Host\n",
            Self::Unavailable => "the directory does not answer\n",
        }
    }
}

/// Whether a head is there as a whole.
pub(super) fn is_whole(head: &[u8]) -> bool {
    head.windows(4).any(|bytes| bytes == b"\r\n\r\n") || head.windows(2).any(|it| it == b"\n\n")
}

/// Reads the head of a request.
///
/// # Errors
/// The status by which it is refused.
pub(super) fn read(head: &[u8]) -> Result<Wanted, Status> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = std::str::from_utf8(lines.next().unwrap_or_default());
    let line = line.map_err(|_| Status::BadRequest)?.trim_end_matches('\r');
    let words: Vec<&str> = line.split(' ').collect();
    let &[method, target, version] = &*words else { return Err(Status::BadRequest) };
    if !version.starts_with("HTTP/1.") {
        return Err(Status::BadRequest);
    }
    if !is_ours(lines) {
        return Err(Status::Misdirected);
    }
    if method != "GET" {
        return Err(Status::NotAllowed);
    }
    match target.split_once('?').unwrap_or((target, "")) {
        ("/", query) => form(query).map(Wanted::Page).ok_or(Status::BadRequest),
        ("/style.css", "") => Ok(Wanted::Style),
        _ => Err(Status::NotFound),
    }
}

/// Whether the fields of a request name this host: exactly one Host, of loopback.
fn is_ours<'l>(fields: impl Iterator<Item = &'l [u8]>) -> bool {
    let mut hosts = fields.filter_map(|line| {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
        name.eq_ignore_ascii_case("host").then_some(value.trim())
    });
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let address = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let is_loopback = |address: IpAddr| address.is_loopback();
    address.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(is_loopback)
}

/// The fields of a form; nothing if there are others, or one is there twice, or says what is no text.
fn form(query: &str) -> Option<Form> {
    let mut form = Form::default();
    let mut seen = [false; 3];
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=')?;
        let fields = [("from", &mut form.from), ("to", &mut form.to), ("port", &mut form.port)];
        let (place, (_, field)) = fields.into_iter().enumerate().find(|(_, it)| it.0 == key)?;
        if std::mem::replace(&mut seen[place], true) {
            return None;
        }
        *field = decoded(value)?.trim().to_owned();
    }
    Some(form)
}

/// A value without its encoding.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                (high << 4 | low) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// An answer with its head.
pub(super) fn answer(status: Status, kind: &str, body: &str) -> Vec<u8> {
    let (line, length) = (status.line(), body.len());
    format!(
        "HTTP/1.1 {line}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         {FIELDS}\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn get(target: &str) -> Result<Wanted, Status> {
        read(format!("GET {target} HTTP/1.1\r\nHost: localhost:8080\r\n\r\n").as_bytes())
    }

    fn page(from: &str, to: &str, port: &str) -> Result<Wanted, Status> {
        let [from, to, port] = [from, to, port].map(str::to_owned);
        Ok(Wanted::Page(Form { from, to, port }))
    }

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        assert_eq!(get("/"), page("", "", ""));
        assert_eq!(get("/?from=laptop&to=nas&port=tcp%2F22"), page("laptop", "nas", "tcp/22"));
        assert_eq!(get("/?port=%3Cb%3E+%c3%a4&to="), page("", "", "<b> ä"));
        assert_eq!(get("/style.css"), Ok(Wanted::Style));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for target in ["/?from=%", "/?from=%4", "/?from=%zz", "/?from=%+1", "/?from=%ff", "/?x=1"] {
            assert_eq!(get(target), Err(Status::BadRequest), "{target}");
        }
        for target in ["/?from=a&from=b", "/?from", "/?%66rom=a", "/?from=%80"] {
            assert_eq!(get(target), Err(Status::BadRequest), "{target}");
        }
        for target in ["/../etc/passwd", "//", "/style.css?x", "http://localhost/", "*"] {
            assert_eq!(get(target), Err(Status::NotFound), "{target}");
        }
        for head in ["", "GET\r\n", "GET / HTTP/2\r\n", "GET /a b HTTP/1.1\r\n", "\u{ff}\r\n"] {
            let head = format!("{head}Host: localhost\r\n\r\n");
            assert_eq!(read(head.as_bytes()), Err(Status::BadRequest), "{head}");
        }
        assert_eq!(read(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Err(Status::NotAllowed));
        assert_eq!(read(b"GET /\xff HTTP/1.1\r\nHost: ::1\r\n\r\n"), Err(Status::BadRequest));
    }

    #[test]
    fn another_hosts_name_is_refused() {
        let ask = |fields: &str| read(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "127.3.2.1", "[::1]:8080"] {
            assert_eq!(ask(&format!("hOST: {host}\r\n")), page("", "", ""), "{host}");
        }
        for host in ["evil.example", "localhost.evil", "192.0.2.1", "[fe80::1]", "", "a@127.0.0.1"]
        {
            assert_eq!(ask(&format!("Host: {host}\r\n")), Err(Status::Misdirected), "{host}");
        }
        assert_eq!(ask(""), Err(Status::Misdirected));
        assert_eq!(ask("Host: localhost\r\nHost: evil\r\n"), Err(Status::Misdirected));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_refused(head in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&head);
        }

        #[test]
        fn any_text_arrives_that_is_encoded(text in ".{0,40}") {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(get(&format!("/?to={encoded}")), page("", text.trim(), ""));
        }

        #[test]
        fn any_query_is_read_or_refused(query in "[a-z=&%+0-9f]{0,60}") {
            let _ = get(&format!("/?{query}"));
        }
    }
}
