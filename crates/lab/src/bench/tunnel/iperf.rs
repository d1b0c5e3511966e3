//! iperf3: what arrives of what is sent.
//!
//! Contract: each transfer has a server and a client of its own, both ended with it. What arrived is what the server
//! counted, which the client is told at the end.
//! Source: `iperf3 --json` of iperf3 3.12.

use std::io::{self, BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::namespace::program;
use super::site::Host;

/// The first server's; the others' follow.
const PORT: u16 = 5201;
/// Seconds beyond those of a transfer, after which it has failed.
const PATIENCE: f64 = 25.0;

/// What to send.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// By so many connections at once.
    Tcp { streams: u8 },
    /// Datagrams with so many bytes, at so many bits a second; as many as there can be where there is no rate.
    Udp { length: u16, rate: Option<u64> },
}

/// One that is running.
pub(super) struct Transfer {
    server: Child,
    /// What the server says, which it must be able to.
    said: Option<BufReader<ChildStdout>>,
    to: (Ipv4Addr, u16),
    client: Option<Child>,
}

/// What came of one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Arrived {
    /// Bits a second at the receiver.
    pub(super) rate: f64,
    /// Bytes.
    pub(super) bytes: f64,
    /// Segments that were sent again.
    pub(super) retransmits: f64,
    /// Percent of the datagrams that were sent.
    pub(super) lost: f64,
    /// Datagrams that came after later ones.
    pub(super) reordered: f64,
}

impl Transfer {
    /// A server that listens at a host; those of one host at one time differ in their numbers.
    pub(super) fn listen(at: &Host, number: u16) -> io::Result<Self> {
        let mut server = at.place.program("iperf3");
        let port = PORT + number;
        server.args(["-s", "-1", "-i", "0", "--forceflush", "-p", &port.to_string()]);
        // Answers to datagrams come from there, too.
        server.args(["-B", &at.end.address.to_string()]);
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = at.place.spawn(server)?;
        let said = server.stdout.take().map(BufReader::new);
        let mut transfer = Self { server, said, to: (at.end.address, port), client: None };
        transfer.listening()?;
        Ok(transfer)
    }

    /// Has a host send to it.
    pub(super) fn send(&mut self, from: &Host, load: Load, seconds: f64) -> io::Result<()> {
        self.client = Some(from.place.spawn(client(self.to, load, seconds))?);
        Ok(())
    }

    /// Waits until the server listens.
    fn listening(&mut self) -> io::Result<()> {
        let said = self.said.iter_mut().flat_map(BufRead::lines);
        let mut lines = said.map_while(Result::ok);
        match lines.any(|line| line.contains("listening")) {
            true => Ok(()),
            false => Err(io::Error::other("iperf3 does not listen")),
        }
    }

    /// Waits for its end.
    pub(super) fn finish(mut self) -> io::Result<Arrived> {
        let client = self.client.take().ok_or_else(|| io::Error::other("iperf3 has no client"))?;
        let output = client.wait_with_output()?;
        read(&output.stdout)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        for child in self.client.iter_mut().chain([&mut self.server]) {
            // A server has ended with its only client, if all went well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The whole of one transfer.
pub(super) fn transfer(from: &Host, to: &Host, load: Load, seconds: f64) -> io::Result<Arrived> {
    let mut transfer = Transfer::listen(to, 0)?;
    transfer.send(from, load, seconds)?;
    transfer.finish()
}

fn client((to, port): (Ipv4Addr, u16), load: Load, seconds: f64) -> Command {
    let mut client = program("timeout");
    let limit = seconds + PATIENCE;
    // One that is ended with its limit.
    client.arg(limit.to_string()).args(["setpriv", "--pdeathsig", "TERM", "iperf3", "--json"]);
    client.args(["-i", "0", "-c", &to.to_string(), "-p", &port.to_string()]);
    match load {
        Load::Tcp { streams } => client.args(["-P", &streams.to_string()]),
        Load::Udp { length, rate } => {
            let rate = rate.unwrap_or_default().to_string();
            client.args(["-u", "-l", &length.to_string(), "-b", &rate])
        }
    };
    client.args(["-t", &seconds.ceil().to_string()]);
    client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    client
}

fn read(json: &[u8]) -> io::Result<Arrived> {
    let document: Value = serde_json::from_slice(json)
        .map_err(|_| io::Error::other("iperf3 was stuck, and has been ended"))?;
    if let Some(error) = document["error"].as_str() {
        return Err(io::Error::other(format!("iperf3: {error}")));
    }
    let end = &document["end"];
    let received = |name: &str| end["sum_received"][name].as_f64();
    let rate = received("bits_per_second");
    let streams = || end["streams"].as_array().into_iter().flatten();
    let reordered = streams().filter_map(|stream| stream["udp"]["out_of_order"].as_f64()).sum();
    Ok(Arrived {
        rate: rate.ok_or_else(|| io::Error::other("iperf3 does not tell what arrived"))?,
        bytes: received("bytes").unwrap_or_default(),
        retransmits: end["sum_sent"]["retransmits"].as_f64().unwrap_or_default(),
        lost: received("lost_percent").unwrap_or_default(),
        reordered,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_is_read() {
        let udp = br#"{"end": {
            "streams": [{"udp": {"out_of_order": 3}}, {"udp": {"out_of_order": 4}}],
            "sum": {"bits_per_second": 9e9},
            "sum_sent": {"bytes": 2000, "bits_per_second": 9e9},
            "sum_received": {"bytes": 1000, "bits_per_second": 8e6, "lost_percent": 50}}}"#;
        let expected =
            Arrived { rate: 8e6, bytes: 1000.0, retransmits: 0.0, lost: 50.0, reordered: 7.0 };
        assert_eq!(read(udp).unwrap(), expected);
        let tcp = br#"{"end": {"streams": [{"sender": {}}],
            "sum_sent": {"retransmits": 5}, "sum_received": {"bytes": 7, "bits_per_second": 1e6}}}"#;
        let expected = Arrived { rate: 1e6, bytes: 7.0, retransmits: 5.0, ..Arrived::default() };
        assert_eq!(read(tcp).unwrap(), expected);
    }

    #[test]
    fn what_failed_is_told() {
        let told = |json: &[u8]| read(json).unwrap_err().to_string();
        assert!(told(br#"{"error": "unable to connect"}"#).contains("unable to connect"));
        assert!(told(b"").contains("stuck"));
        assert!(told(b"{}").contains("does not tell"));
    }
}
