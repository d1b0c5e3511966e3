//! [`framed`]: a reply in a frame that goes back by the link on which the refused packet came.
//!
//! Contract: the link header is that of the refused frame, tags and session included, its addresses swapped. A frame
//! that was sent to more than one host is not answered.
//!
//! Source: Linux 6.18 `nft_reject_br_push_etherhdr` and `nft_reject_bridge_eval`
//! (`net/bridge/netfilter/nft_reject_bridge.c`).

use super::NoReply;
use crate::{Headers, ethernet, pppoe};

/// Writes `reply` into `to` with the link header that answers the one before `headers.network` in `frame`; what was
/// there goes. A bare packet is answered by a bare one.
///
/// # Errors
/// Where none is sent; `to` is then as it was.
pub fn framed(
    frame: &[u8],
    headers: &Headers,
    reply: &[u8],
    to: &mut Vec<u8>,
) -> Result<(), NoReply> {
    let header = frame.get(..headers.network).ok_or(NoReply::Unknown)?;
    let addresses = match (headers.link.ethernet, ethernet::Header::new_checked(header)) {
        (Some(0), Some(ethernet)) => Some((ethernet.source(), ethernet.destination())),
        _ if header.is_empty() => None,
        _ => return Err(NoReply::Unknown),
    };
    if addresses.is_some_and(|(_, destination)| destination[0] & 1 == 1) {
        return Err(NoReply::Address);
    }
    to.clear();
    to.extend_from_slice(header);
    to.extend_from_slice(reply);
    if let Some((source, destination)) = addresses {
        to[ethernet::DESTINATION].copy_from_slice(&source);
        to[ethernet::SOURCE].copy_from_slice(&destination);
        pppoe::set_length(to, headers.network);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checksums, Link, parse};

    const REPLY: [u8; 20] = [0x45; 20];

    fn answered(destination: u8, rest: &[u8], link: Link) -> Result<Vec<u8>, NoReply> {
        let mut frame = [[destination, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 7]].concat();
        frame.extend_from_slice(rest);
        frame.extend_from_slice(&[
            0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        let headers = parse(link, &frame, frame.len(), Checksums::Ignore);
        let mut to = vec![1, 2, 3];
        framed(&frame, &headers, &REPLY, &mut to)?;
        Ok(to)
    }

    #[test]
    fn addresses_are_swapped_and_tags_stay() {
        let back = answered(2, &[0x81, 0, 0x20, 5, 8, 0], Link::Wire);
        let header = [2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9, 0x81, 0, 0x20, 5, 8, 0];
        assert_eq!(back, Ok([&header[..], &REPLY].concat()));
    }

    #[test]
    fn a_session_tells_the_length_of_the_reply() {
        let back = answered(2, &[0x88, 0x64, 0x11, 0, 0, 3, 0, 22, 0, 0x21], Link::Wire);
        assert_eq!(
            back.map(|frame| frame[14..22].to_vec()),
            Ok(vec![0x11, 0, 0, 3, 0, 22, 0, 0x21])
        );
    }

    #[test]
    fn what_many_hosts_got_is_not_answered() {
        for destination in [1, 0xff] {
            assert_eq!(answered(destination, &[8, 0], Link::Wire), Err(NoReply::Address));
        }
    }
}
