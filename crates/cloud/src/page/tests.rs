//! The page over its socket: what browsers get, what hostile clients do not, and that nobody keeps others from it.

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::overview::{Node, Path as Way, State};

/// A name that a directory would not take, in all places that have one.
const HOSTILE: &str = "<script>alert(\"1\")</script>'&\u{202e}";

fn overview() -> Overview {
    let node = |name: &str, state| {
        let (name, at) = (name.to_owned(), Some("203.0.113.7:9".to_owned()));
        Node { name, state, at, v4: "10.99.0.2".to_owned(), ..Node::default() }
    };
    let hostile = HOSTILE.to_owned();
    Overview {
        domain: hostile.clone(),
        nodes: vec![
            node("laptop", State::Present),
            node("nas", State::Present),
            node(HOSTILE, State::Absent),
        ],
        node_count: 1_234,
        paths: vec![
            Way {
                nodes: ["laptop".to_owned(), "nas".to_owned()],
                said: [Some((true, Some(3_200))), Some((false, None))],
                relayed: Some((10, 1_234_567)),
                asked: Some(3),
            },
            Way { nodes: [hostile.clone(), hostile.clone()], ..Way::default() },
        ],
        policy: format!("# {HOSTILE}\n[[allow]]\nfrom = [\"laptop\"]\nto = [\"nas\"]\n"),
        policy_version: 4,
        log: vec![
            format!("2026-11-27T00:00:00Z {HOSTILE}"),
            "2026-11-27T00:00:01Z alarm: b".to_owned(),
        ],
        ..Overview::default()
    }
}

/// A page, its address, and how often its server was asked.
struct Served {
    at: SocketAddr,
    asked: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

fn served() -> Served {
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("control.sock");
    let listener = UnixListener::bind(&control).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let request = control::request(&stream).unwrap();
            assert!(matches!(request, Request::Overview {}), "the page asks for nothing else");
            count.fetch_add(1, Ordering::Relaxed);
            control::answer(&stream, &json!(overview()));
        }
    });
    let page = Page::open("127.0.0.1:0".parse().unwrap(), &control).unwrap();
    let at = page.listener.local_addr().unwrap();
    page.start().unwrap();
    Served { at, asked, _folder: folder }
}

/// What is answered until the page closes the connection.
fn says(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = Vec::new();
    // A connection that makes room may be reset.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn connected(served: &Served, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(served.at).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

fn get(served: &Served, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", served.at);
    says(connected(served, request.as_bytes()))
}

#[test]
fn the_page_shows_what_is_known_and_nothing_of_it_is_markup() {
    let served = served();
    let page = get(&served, "/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"));
    let policy =
        "Content-Security-Policy: default-src 'none'; style-src 'self'; form-action 'self'; ";
    assert!(page.contains(policy) && page.contains("X-Content-Type-Options: nosniff\r\n"));
    let (_, html) = page.split_once("\r\n\r\n").unwrap();
    assert!(!html.contains("<script") && !html.contains("style=") && !html.contains('\u{202e}'));
    // Domain twice, nodes in a list, tables and policy, and the log.
    assert!(
        html.matches("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;").count() >= 8
    );
    for part in
        ["direct, 3.2 ms", ">relay<", "1,234,567", "3 s ago", "203.0.113.7:9", "1,231 more nodes"]
    {
        assert!(html.contains(part), "{part}: {html}");
    }
    // A row begins it with a column: the policy lets laptop alone.
    let cells = |row: &str| {
        let rest = html.split("id=\"whom\"").nth(1).unwrap();
        rest.split(&format!("<tr><th scope=\"row\">{row}</th>"))
            .nth(1)
            .unwrap()
            .split("</tr>")
            .next()
            .unwrap()
            .to_owned()
    };
    assert!(
        cells("laptop").contains("<td class=\"direct\">direct, 3.2 ms</td>"),
        "{}",
        cells("laptop")
    );
    assert!(cells("nas").contains("may not") && !cells("nas").contains("direct"));
    assert!(html.contains("<li class=\"alarm\">"));
    assert!(get(&served, "/style.css").contains("Content-Type: text/css;"));
}

#[test]
fn the_form_is_answered_by_the_policy() {
    let served = served();
    let yes = get(&served, "/?from=laptop&to=nas&port=tcp%2F22");
    assert!(yes.contains("<strong>Yes: laptop may begin tcp/22 with nas.</strong>"), "{yes}");
    assert!(yes.contains("Line of the policy, version 4: laptop -&gt; nas"), "{yes}");
    let no = get(&served, "/?from=nas&to=laptop&port=tcp%2F22");
    assert!(no.contains("Not by its direction, as laptop alone may begin it"), "{no}");
    let odd = get(&served, "/?from=%22%3E%3Cb%3E&to=nas&port=icmp");
    assert!(
        odd.contains("value=\"&quot;&gt;&lt;b&gt;\"") && odd.contains("From: expected"),
        "{odd}"
    );
}

#[test]
fn what_is_refused_is_refused_with_what_was_expected() {
    let served = served();
    let ask = |head: &str| says(connected(&served, head.as_bytes()));
    assert!(ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 421 "));
    assert!(ask("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(get(&served, "/?from=%zz").starts_with("HTTP/1.1 400 "));
    assert!(get(&served, "/favicon.ico").starts_with("HTTP/1.1 404 "));
    assert_eq!(served.asked.load(Ordering::Relaxed), 0, "the server is not asked for it");
    let long = format!("GET /?from={} HTTP/1.1\r\n", "a".repeat(4 * LONGEST));
    let answer = ask(&long);
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let many = format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(LONGEST));
    assert!(ask(&many).starts_with("HTTP/1.1 431 "));
}

#[test]
fn clients_that_say_nothing_or_read_nothing_keep_nobody_from_the_page() {
    let served = served();
    let silent: Vec<TcpStream> = (0..MOST).map(|_| connected(&served, b"")).collect();
    let slow: Vec<TcpStream> =
        (0..MOST).map(|_| connected(&served, b"GET / HTTP/1.1\r\nHost: loc")).collect();
    assert!(get(&served, "/").starts_with("HTTP/1.1 200 "));
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let deaf: Vec<TcpStream> = (0..MOST).map(|_| connected(&served, request)).collect();
    assert!(get(&served, "/").starts_with("HTTP/1.1 200 "));
    drop((silent, slow, deaf));
}

#[test]
fn a_client_that_takes_too_long_is_left() {
    let served = served();
    let start = Instant::now();
    let answer = says(connected(&served, b"GET / HTTP/1.1\r\nHost: localhost\r\n"));
    assert!(answer.is_empty() && start.elapsed() >= PATIENCE);
}

#[test]
fn the_server_is_asked_once_for_many_clients() {
    let served = served();
    let start = Instant::now();
    for _ in 0..50 {
        assert!(get(&served, "/").starts_with("HTTP/1.1 200 "));
    }
    let asked = served.asked.load(Ordering::Relaxed);
    let most = 1 + start.elapsed().as_nanos() / FRESH.as_nanos();
    assert!(asked as u128 <= most, "{asked} times");
}

#[test]
fn a_server_that_does_not_answer_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let page = Page::open("127.0.0.1:0".parse().unwrap(), &folder.path().join("none")).unwrap();
    let at = page.listener.local_addr().unwrap();
    page.start().unwrap();
    let served = Served { at, asked: Arc::default(), _folder: folder };
    let answer = get(&served, "/");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("does not answer"), "{answer}");
    assert!(Page::open("0.0.0.0:0".parse().unwrap(), Path::new("none")).is_err());
}

/// For `make page-check`: serves the example until standard input ends.
#[test]
#[ignore = "for a browser"]
fn an_example_for_a_browser() {
    let served = served();
    println!("http://{}/", served.at);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
