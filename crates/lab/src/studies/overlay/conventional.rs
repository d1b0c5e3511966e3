//! One thread: a packet from the device is sealed and sent, then a datagram is opened and handed out, and so on.

use std::io;

use tunnel::{Received, Staged};

use super::end::{BUFFER, End, wait};

/// For good.
pub(super) fn run(mut end: End) -> io::Result<()> {
    let mut buffer = [0; BUFFER];
    loop {
        let out = outbound(&mut end, &mut buffer)?;
        let inward = inbound(&mut end, &mut buffer)?;
        end.wires.send_due(&mut end.tunnel);
        if !out && !inward {
            wait(&end.wires.both())?;
        }
    }
}

/// Seals one packet; whether there was one.
fn outbound(end: &mut End, buffer: &mut [u8; BUFFER]) -> io::Result<bool> {
    let Some(inner) = end.wires.read(buffer)? else { return Ok(false) };
    let now = end.wires.now();
    if let Staged::Seal(sealing) = end.tunnel.stage(&buffer[inner.clone()], now) {
        let to = sealing.to();
        if let Ok(sealed) = sealing.seal(buffer, inner) {
            end.wires.send(&buffer[sealed], to);
        }
    }
    Ok(true)
}

/// Opens one datagram; whether there was one.
fn inbound(end: &mut End, buffer: &mut [u8; BUFFER]) -> io::Result<bool> {
    let Some((length, from)) = end.wires.receive(buffer)? else { return Ok(false) };
    let datagram = &mut buffer[..length];
    match end.tunnel.receive(datagram, from, end.wires.now()) {
        Received::Opening(opening) => {
            if let Ok(opened) = opening.open(datagram) {
                end.wires.deliver(&mut end.tunnel, opened, datagram);
            }
        }
        other => end.wires.answer(&other),
    }
    Ok(true)
}
